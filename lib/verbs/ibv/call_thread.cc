#include "lib/verbs/ibv/call_thread.h"

#include <utility>

namespace tokamak::verbs::ibv {

CallThread::CallThread() : thread_({"ibv-calls"}) {
  thread_.CallOn([this] {
    more_ = thread_.loop().MakeSignal([this] {
      if (RunSome()) more_->Raise();
    });
  });
}

CallThread::~CallThread() {
  thread_.CallOn([this] {
    while (RunSome()) {
    }
    more_.reset();
  });
}

void CallThread::Post(std::function<void()> call) {
  const base::MutexLock lock(mutex_);
  posted_.push_back(std::move(call));
  more_->Raise();
}

bool CallThread::RunSome() {
  for (size_t i = 0; i < kCallsPerTurn; ++i) {
    std::function<void()> call;
    {
      const base::MutexLock lock(mutex_);
      if (posted_.empty()) return false;
      call = std::move(posted_.front());
      posted_.pop_front();
    }
    call();
  }
  return true;
}

}  // namespace tokamak::verbs::ibv

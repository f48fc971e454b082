#include "lib/os/loop_thread.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::os {

LoopThread::LoopThread(ThreadOptions options, Detection detection)
    : loop_(detection),
      asked_(loop_.MakeSignal([this] { RunCalls(); })),
      thread_(StartThread(std::move(options), [this] { loop_.Run(); })) {}

LoopThread::~LoopThread() { Stop(); }

void LoopThread::CallOn(absl::FunctionRef<void()> call) {
  if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) return call();
  Call asked{call};
  const base::MutexLock lock(mutex_);
  calls_.push_back(&asked);
  asked_->Raise();
  while (!asked.done) done_.Wait(mutex_);
}

void LoopThread::Stop() {
  if (!thread_.joinable()) return;
  CHECK(thread_.get_id() != std::this_thread::get_id()) << "a loop's thread cannot wait for its own end";
  loop_.Stop();
  thread_.join();
}

void LoopThread::RunCalls() {
  std::vector<Call*> calls;
  {
    const base::MutexLock lock(mutex_);
    calls.swap(calls_);
  }
  for (Call* call : calls) {
    call->run();
    const base::MutexLock lock(mutex_);
    call->done = true;
    done_.NotifyAll();
  }
}

}  // namespace tokamak::os

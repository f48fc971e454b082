#include "lib/verbs/ibv/inbox.h"

#include <utility>

namespace tokamak::verbs::ibv {

Inbox::Inbox(base::EventLoop& loop)
    : shared_(std::make_shared<Shared>()), signal_(loop.MakeSignal([this] { Run(shared_); })) {
  shared_->signal = signal_.get();
}

Inbox::~Inbox() {
  std::deque<std::function<void()>> unread;  // dropped without the lock
  const base::MutexLock lock(shared_->mutex);
  shared_->signal = nullptr;
  unread.swap(shared_->tasks);
}

void Inbox::Sender::Send(std::function<void()> task) const {
  const base::MutexLock lock(shared_->mutex);
  if (shared_->signal == nullptr) return;
  shared_->tasks.push_back(std::move(task));
  shared_->signal->Raise();
}

// A task may drop the inbox.
void Inbox::Run(std::shared_ptr<Shared> shared) {
  for (;;) {
    std::function<void()> task;
    {
      const base::MutexLock lock(shared->mutex);
      if (shared->signal == nullptr || shared->tasks.empty()) return;
      task = std::move(shared->tasks.front());
      shared->tasks.pop_front();
    }
    task();
  }
}

}  // namespace tokamak::verbs::ibv

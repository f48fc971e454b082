// Inbox runs tasks of other threads on a loop: results of the calls that they made for it.
//
// Law: tasks run one at a time, in the order in which they were sent, and none after the inbox was
// dropped, which a task may do; the rest are dropped.
// Thread rule: the loop's; a Sender from any thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"

namespace tokamak::verbs::ibv {

class Inbox final {
  struct Shared;

 public:
  class Sender final {
   public:
    // Neither waits nor runs `task`; drops it here if the inbox has gone.
    void Send(std::function<void()> task) const;

   private:
    friend class Inbox;
    explicit Sender(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    std::shared_ptr<Shared> shared_;
  };

  explicit Inbox(base::EventLoop& loop);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  Sender sender() const { return Sender(shared_); }

 private:
  struct Shared {
    base::Mutex mutex;
    base::Signal* signal ABSL_GUARDED_BY(mutex) = nullptr;  // null once dropped
    std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mutex);
  };

  static void Run(std::shared_ptr<Shared> shared);

  const std::shared_ptr<Shared> shared_;
  const std::unique_ptr<base::Signal> signal_;
};

}  // namespace tokamak::verbs::ibv

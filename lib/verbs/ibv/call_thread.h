// CallThread is a device's thread for the calls that make connections: those of libibverbs and
// librdmacm that go to the kernel, and with hardware to its firmware, which takes up to
// milliseconds for each of them.
//
// A loop that made them itself would stand still while a thousand peers connect, and with it every
// transfer that is under way. So queue pairs are made here (IbvQueuePair), connections run here
// (off_loop_cm.h), and loops hear what came of it (inbox.h).
//
// Law: what is posted runs in the order in which it was posted, and all of it before the thread
// ends.
// Thread rule: from any thread; dropped on any but its own. So nothing that is posted owns it.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "absl/functional/function_ref.h"
#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"
#include "lib/os/loop_thread.h"

namespace tokamak::verbs::ibv {

class CallThread final {
 public:
  CallThread();
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // The thread's own loop: connections have their timers and descriptors there.
  os::EpollLoop& loop() { return thread_.loop(); }

  void Post(std::function<void()> call);

  // Before anything that was posted, and returns when it has run: for setting up and tearing down.
  void CallOn(absl::FunctionRef<void()> call) { thread_.CallOn(call); }

 private:
  // Then the loop looks at its timers and descriptors.
  static constexpr size_t kCallsPerTurn = 16;

  bool RunSome();  // whether there are more

  base::Mutex mutex_;
  std::deque<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  os::LoopThread thread_;
  std::unique_ptr<base::Signal> more_;  // dropped by the thread
};

}  // namespace tokamak::verbs::ibv

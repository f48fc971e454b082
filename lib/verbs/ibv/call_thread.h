// CallThread is a device's thread for the calls that make connections: those of libibverbs and
// librdmacm that enter the kernel, and with hardware its firmware, for up to milliseconds each.
//
// On a loop they would stall all transfers while a thousand peers connect. So queue pairs are made
// here (IbvQueuePair), connections run here (off_loop_cm.h), and loops get the results (inbox.h).
//
// Law: posted tasks run in order, all of them before the thread ends.
// Thread rule: any thread; dropped on any but its own, so a posted task must never own it.
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

  os::EpollLoop& loop() { return thread_.loop(); }

  void Post(std::function<void()> call);

  // Runs `call` before any posted task, and waits for it.
  void CallOn(absl::FunctionRef<void()> call) { thread_.CallOn(call); }

 private:
  // Calls before the loop serves its timers and descriptors again.
  static constexpr size_t kCallsPerTurn = 16;

  bool RunSome();  // returns whether more wait

  base::Mutex mutex_;
  std::deque<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  os::LoopThread thread_;
  std::unique_ptr<base::Signal> more_;  // dropped by the thread
};

}  // namespace tokamak::verbs::ibv

// LoopThread runs an EpollLoop on a thread of its own: a transport engine, the NIC of soft:udp.
//
// Objects on the loop are made and dropped there, by CallOn.
//
// Thread rule: made, stopped and dropped by one thread; CallOn from any thread, but it must have
// returned before another one stops it.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "lib/base/mutex.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/thread.h"

namespace tokamak::os {

class LoopThread final {
 public:
  explicit LoopThread(ThreadOptions options, Detection detection = Detection::Event());
  // Stops.
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  // For use on its thread, or on any once it has stopped.
  EpollLoop& loop() { return loop_; }

  // Runs `call` on the loop's thread and waits for it; runs it right here on that thread, or if the
  // loop was stopped.
  void CallOn(absl::FunctionRef<void()> call);

  // Ends the loop after its round and joins the thread. Posted tasks that did not run stay with the
  // loop. No effect the second time; not from the loop's own thread.
  void Stop();

 private:
  struct Call {
    absl::FunctionRef<void()> run;
    bool done = false;  // under mutex_, which clang cannot know here
  };

  void RunCalls();

  EpollLoop loop_;
  base::Mutex mutex_;
  base::CondVar done_;
  std::vector<Call*> calls_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<base::Signal> asked_;
  std::thread thread_;
};

}  // namespace tokamak::os

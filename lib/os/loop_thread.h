// LoopThread runs an EpollLoop on a thread of its own: a transport engine, the NIC of soft:udp.
//
// What lives on the loop is made and dropped there, by CallOn:
//
//   LoopThread thread({"engine0"}, Detection::Adaptive(base::Microseconds(50)));
//   thread.CallOn([&] { engine = std::make_unique<Engine>(thread.loop(), ...); });
//   ...
//   thread.CallOn([&] { engine.reset(); });
//
// Thread rule: made, stopped and dropped by one thread; CallOn from any, but another thread's must
// have returned before it is stopped.
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

  // To be used on its thread, or by anybody once stopped.
  EpollLoop& loop() { return loop_; }

  // Runs `call` on the loop's thread and returns when it has returned: for setting up and tearing
  // down. Runs it right here where this is the loop's thread, or where the loop was stopped.
  void CallOn(absl::FunctionRef<void()> call);

  // The loop ends its round and the thread is joined. What was posted and did not run stays with
  // the loop. Does nothing the second time; not from the loop's own thread.
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

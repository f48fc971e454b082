// EventTakers knows which threads were told an event of a channel of rdma_cm and have not asked for
// the next one yet.
//
// Linux sleeps when an id is destroyed. A thread for events, which has just been told of the id's
// end, comes to ask for the next event meanwhile, and not only once the program has closed the
// channel. So whoever destroys an id waits for the others here; those that ended, or that do
// something else for long, are not waited for.
//
// Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>

#include "absl/base/thread_annotations.h"
#include "lib/base/mutex.h"

namespace tokamak::verbs::kernel {

class EventTakers final {
 public:
  // `longest`: for how long a thread that does not ask is waited for, once.
  explicit EventTakers(std::chrono::milliseconds longest) : longest_(longest) {}

  // This thread asks for an event of the channel; is told one.
  void Asks(int channel);
  void IsTold(int channel);

  // Returns once no other thread that was told an event of the channel owes the next question.
  void AwaitOthers(int channel);

  // The channel is closed.
  void Forget(int channel);

 private:
  // How often it is looked whether a thread has ended, of which nothing tells.
  static constexpr std::chrono::milliseconds kLook{1};

  bool Owes(int channel) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::chrono::milliseconds longest_;
  base::Mutex mutex_;
  base::CondVar asked_;
  std::map<int, pid_t> told_
      ABSL_GUARDED_BY(mutex_);  // by channel, the thread that was told last and has not asked since
};

}  // namespace tokamak::verbs::kernel

// EventTakers knows which threads have got an event of a channel of rdma_cm and have not asked for
// the next one yet.
//
// Linux sleeps when an id is destroyed. Meanwhile a thread that has just got the event of the id's
// end asks for the next one, before the program closes the channel. So a thread that destroys an id
// waits for these here; not for those that ended, or that stay away for long.
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
  // `longest`: longest wait for a thread that does not ask, once.
  explicit EventTakers(std::chrono::milliseconds longest) : longest_(longest) {}

  // This thread asks for an event of the channel; gets one.
  void Asks(int channel);
  void IsTold(int channel);

  // Returns once no other thread has an event of the channel without having asked again.
  void AwaitOthers(int channel);

  // The channel is closed.
  void Forget(int channel);

 private:
  // Interval of the check whether a thread has ended, which no event reports.
  static constexpr std::chrono::milliseconds kLook{1};

  bool Owes(int channel) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::chrono::milliseconds longest_;
  base::Mutex mutex_;
  base::CondVar asked_;
  std::map<int, pid_t> told_
      ABSL_GUARDED_BY(mutex_);  // by channel, the thread that got the last event and has not asked since
};

}  // namespace tokamak::verbs::kernel

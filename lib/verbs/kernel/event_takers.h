// EventTakers knows which threads have got an event of a channel of rdma_cm and have not asked for
// the next one yet.
//
// Linux sleeps when an id is destroyed. Meanwhile a thread that has just got the id's last event
// asks for the next one, before the program closes the channel. So a thread that destroys an id
// waits for such threads here, but not for those that have ended or stay away for long.
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
  // `longest`: the longest wait for a thread that does not ask.
  explicit EventTakers(std::chrono::milliseconds longest) : longest_(longest) {}

  // This thread asks for an event of the channel; gets one.
  void Asks(int channel);
  void IsTold(int channel);

  // Returns once all other threads that got an event of the channel have asked again.
  void AwaitOthers(int channel);

  void Forget(int channel);

 private:
  // Interval of looks for ended threads, which no event reports.
  static constexpr std::chrono::milliseconds kLook{1};

  bool Owes(int channel) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::chrono::milliseconds longest_;
  base::Mutex mutex_;
  base::CondVar asked_;
  std::map<int, pid_t> told_ ABSL_GUARDED_BY(mutex_);  // by channel, who got the last event and has not asked since
};

}  // namespace tokamak::verbs::kernel

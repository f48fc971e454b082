// DeviceWatches are those who want to hear of a device's events, each on a loop of its own: what
// Device::Watch is made of.
//
// Law: a watch hears of each event once, in order, in a task of its loop, and of none after it was
//      dropped. What its handler causes it hears of in a later task. Of an event that waits
//      already, as the last one, it hears once.
// Thread rule: Tell and Forget from any thread, also with the device's own lock held: the lock in
//      here is the innermost. A watch is made and dropped on its loop's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs {

class DeviceWatches final {
 public:
  // Events that may wait for one watch. What is beyond is logged and lost.
  static constexpr size_t kMaxWaiting = 1024;

  DeviceWatches() = default;
  ~DeviceWatches();
  DeviceWatches(const DeviceWatches&) = delete;
  DeviceWatches& operator=(const DeviceWatches&) = delete;

  // `keep` lives on while the watch does; it owns these, directly or not. The handler may drop the
  // watch.
  std::unique_ptr<DeviceWatch> Add(std::shared_ptr<void> keep, base::EventLoop& loop, DeviceEventHandler handler);

  void Tell(const DeviceEventInfo& event);

  // `handle` is being dropped: nobody hears of it any more, but for what is told after this.
  void Forget(const SharedReceiveQueue* handle);

 private:
  class Watch;

  base::Mutex mutex_;
  std::vector<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::verbs

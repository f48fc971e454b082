// DeviceWatches are the listeners for a device's events, each on a loop of its own; they implement
// Device::Watch.
//
// Law: a watch hears of each event once, in order, in a task of its loop, and of none after it was
//      dropped. Events that its handler causes come in a later task. An event that waits already,
//      as the last one, comes once.
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
  // Most events that wait for one watch. Further ones are logged and lost.
  static constexpr size_t kMaxWaiting = 1024;

  DeviceWatches() = default;
  ~DeviceWatches();
  DeviceWatches(const DeviceWatches&) = delete;
  DeviceWatches& operator=(const DeviceWatches&) = delete;

  // `keep` lives on while the watch does; it owns these, directly or not. The handler may drop the
  // watch.
  std::unique_ptr<DeviceWatch> Add(std::shared_ptr<void> keep, base::EventLoop& loop, DeviceEventHandler handler);

  void Tell(const DeviceEventInfo& event);

  // `handle` is being dropped: drops its waiting events. Events that are raised after this stay.
  void Forget(const SharedReceiveQueue* handle);

 private:
  class Watch;

  base::Mutex mutex_;
  std::vector<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::verbs

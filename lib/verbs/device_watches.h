// DeviceWatches are the listeners for a device's events, each on a loop of its own; they implement
// Device::Watch.
//
// Law: a watch hears of each event once, in order, in a task of its loop, and of none after it was
// dropped. Events that its handler causes come in a later task. An event equal to the last one that
// waits is not queued again. Thread rule: Tell and Forget from any thread, also with the device's
// lock held: the lock here is the innermost. A watch is made and dropped on its loop's thread.
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
  // Most events that wait for one watch; further ones are logged and lost.
  static constexpr size_t kMaxWaiting = 1024;

  DeviceWatches() = default;
  ~DeviceWatches();
  DeviceWatches(const DeviceWatches&) = delete;
  DeviceWatches& operator=(const DeviceWatches&) = delete;

  // Adds a watch. It keeps `keep` alive, which owns this object, directly or not. The handler may
  // drop the watch.
  std::unique_ptr<DeviceWatch> Add(std::shared_ptr<void> keep, base::EventLoop& loop, DeviceEventHandler handler);

  void Tell(const DeviceEventInfo& event);

  // Drops the waiting events of `handle`, which is being dropped; later ones stay.
  void Forget(const SharedReceiveQueue* handle);

 private:
  class Watch;

  base::Mutex mutex_;
  std::vector<Watch*> watches_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::verbs

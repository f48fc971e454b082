// DeviceWatches are the listeners for a device's events, each on a loop of its own; they implement
// Device::Watch.
//
// Law: a watch hears of each event once, in order, in a task of its loop, never after its drop; of
// its handler's own events in a later task. An event equal to the last waiting one is dropped.
// Thread rule: Tell and Forget from any thread, also with the device's lock held: the lock here is
// the innermost. A watch is made and dropped on its loop's thread.
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
  // More are logged and lost.
  static constexpr size_t kMaxWaiting = 1024;

  DeviceWatches() = default;
  ~DeviceWatches();
  DeviceWatches(const DeviceWatches&) = delete;
  DeviceWatches& operator=(const DeviceWatches&) = delete;

  // Adds a watch, which holds `keep`, the owner of these, directly or not. The handler may drop the
  // watch.
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

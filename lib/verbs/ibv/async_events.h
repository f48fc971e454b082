// AsyncEvents reads the asynchronous events of a device: port down or up, changed addresses,
// removal, a completion queue's overrun, a queue pair's death, a shared receive queue running low.
//
// A thread of its own reads them, since an owner's loop may go at any time. Each event goes first
// to the object that it names (AsyncTarget), on that thread, then to all watches, on their loops;
// then it is acknowledged. Until then libibverbs does not destroy the object.
//
// Thread rule: any thread; a watch's handler runs on its loop, where the watch is dropped.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/device_watches.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

// The context pointers of our ibv_cq, ibv_qp and ibv_srq point to one.
class AsyncTarget {
 public:
  // Runs on the events' thread, before the watches. Must neither wait for a loop nor destroy
  // anything of libibverbs.
  virtual void OnAsyncEvent(ibv_event_type event) = 0;

 protected:
  ~AsyncTarget() = default;
};

// A shared receive queue's target: watches get its handle, or none once that is dropped.
class SharedReceivesTarget : public AsyncTarget {
 public:
  virtual const SharedReceiveQueue* handle() const = 0;

 protected:
  ~SharedReceivesTarget() = default;
};

// Returns the event for watches; nothing for events that concern nobody, or another port.
std::optional<DeviceEventInfo> ToDeviceEvent(const ibv_async_event& event, uint8_t port);

class AsyncEvents final {
 public:
  AsyncEvents(ibv_context* device, uint8_t port);
  ~AsyncEvents();
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  // `keep` lives as long as the watch.
  std::unique_ptr<DeviceWatch> Watch(std::shared_ptr<void> keep, base::EventLoop& loop, DeviceEventHandler handler) {
    return watches_.Add(std::move(keep), loop, std::move(handler));
  }

  // Sets the callback for a queue pair that got its first data before its connection was known to
  // be up (IBV_EVENT_COMM_EST). It runs on the events' thread; null: none.
  void OnFirstData(std::function<void(uint32_t queue_pair_number)> heard);

  // The same for events after which the routes to peers may have changed (ChangesPaths).
  void OnPathsChanged(std::function<void()> heard);

  // `handle` is being dropped: no watch hears of it any more.
  void Forget(const SharedReceiveQueue* handle);

 private:
  void Read(uint32_t seen);
  void Handle(const ibv_async_event& event);

  ibv_context* const device_;
  const uint8_t port_;
  DeviceWatches watches_;
  base::Mutex handles_mutex_;  // held from a handle's lookup until its watches have heard, and in Forget
  base::Mutex heard_mutex_;
  std::function<void(uint32_t)> first_data_ ABSL_GUARDED_BY(heard_mutex_);
  std::function<void()> paths_changed_ ABSL_GUARDED_BY(heard_mutex_);
  os::LoopThread thread_;
  os::FdWatch watch_;
};

}  // namespace tokamak::verbs::ibv

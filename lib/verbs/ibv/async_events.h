// AsyncEvents reads what a device tells outside of any request: its port went down or up, its
// addresses changed, it was taken away, a completion queue overran, a queue pair died, a shared
// receive queue runs low.
//
// A thread of its own sleeps at the device's event descriptor, since no loop of an owner can be
// counted on to be there. Each event goes first to the object that it names (AsyncTarget), on that
// thread, then to all watches, on their loops; then it is acknowledged. libibverbs destroys no
// object before all its events are, so what an event names is alive while it is handled.
//
// Thread rule: from any thread, but the handler of a watch runs on its loop, where the watch is
// dropped.
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

// What the context pointers of our ibv_cq, ibv_qp and ibv_srq point to.
class AsyncTarget {
 public:
  // On the events' thread, before the watches hear of it. Neither waits for a loop nor destroys
  // anything of libibverbs.
  virtual void OnAsyncEvent(ibv_event_type event) = 0;

 protected:
  ~AsyncTarget() = default;
};

// A shared receive queue's: watches are told its handle, none once it is dropped.
class SharedReceivesTarget : public AsyncTarget {
 public:
  virtual const SharedReceiveQueue* handle() const = 0;

 protected:
  ~SharedReceivesTarget() = default;
};

// What watches are told of an event; nothing for those that concern nobody, or another port of the
// device.
std::optional<DeviceEventInfo> ToDeviceEvent(const ibv_async_event& event, uint8_t port);

class AsyncEvents final {
 public:
  AsyncEvents(ibv_context* device, uint8_t port);
  ~AsyncEvents();
  AsyncEvents(const AsyncEvents&) = delete;
  AsyncEvents& operator=(const AsyncEvents&) = delete;

  // `keep` lives on while the watch does.
  std::unique_ptr<DeviceWatch> Watch(std::shared_ptr<void> keep, base::EventLoop& loop, DeviceEventHandler handler) {
    return watches_.Add(std::move(keep), loop, std::move(handler));
  }

  // `heard` is told which queue pairs got their first data before their connection was known to be
  // up (IBV_EVENT_COMM_EST), on the events' thread, until it is replaced or taken away by null.
  void OnFirstData(std::function<void(uint32_t queue_pair_number)> heard);

  // The same for events after which peers may be reached by other ways than before (ChangesPaths).
  void OnPathsChanged(std::function<void()> heard);

  // The handle is being dropped: nobody hears of it any more.
  void Forget(const SharedReceiveQueue* handle);

 private:
  void Read(uint32_t seen);
  void Handle(const ibv_async_event& event);

  ibv_context* const device_;
  const uint8_t port_;
  DeviceWatches watches_;
  base::Mutex handles_mutex_;  // held from where a handle is looked up until it is told of, and where it is forgotten
  base::Mutex heard_mutex_;
  std::function<void(uint32_t)> first_data_ ABSL_GUARDED_BY(heard_mutex_);
  std::function<void()> paths_changed_ ABSL_GUARDED_BY(heard_mutex_);
  os::LoopThread thread_;
  os::FdWatch watch_;
};

}  // namespace tokamak::verbs::ibv

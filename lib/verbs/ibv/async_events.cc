#include "lib/verbs/ibv/async_events.h"

#include <fcntl.h>

#include <utility>

#include "lib/base/check.h"
#include "lib/verbs/ibv/cm/path_cache.h"

namespace tokamak::verbs::ibv {
namespace {

AsyncTarget* TargetOf(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return static_cast<AsyncTarget*>(event.element.cq->cq_context);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      return static_cast<AsyncTarget*>(event.element.qp->qp_context);
    case IBV_EVENT_SRQ_LIMIT_REACHED:
    case IBV_EVENT_SRQ_ERR:
      return static_cast<AsyncTarget*>(event.element.srq->srq_context);
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<DeviceEventInfo> ToDeviceEvent(const ibv_async_event& event, uint8_t port) {
  DeviceEventInfo info;
  const bool ours = event.element.port_num == port;  // meaningful for ports' events only
  switch (event.event_type) {
    case IBV_EVENT_PORT_ACTIVE:
      info.event = DeviceEvent::kPortUp;
      return ours ? std::make_optional(info) : std::nullopt;
    case IBV_EVENT_PORT_ERR:
      info.event = DeviceEvent::kPortDown;
      return ours ? std::make_optional(info) : std::nullopt;
    case IBV_EVENT_GID_CHANGE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
      info.event = DeviceEvent::kAddressChanged;
      return ours ? std::make_optional(info) : std::nullopt;
    case IBV_EVENT_DEVICE_FATAL:
      info.event = DeviceEvent::kRemoved;
      return info;
    case IBV_EVENT_CQ_ERR:
      info.event = DeviceEvent::kCompletionQueueOverrun;
      return info;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      info.event = DeviceEvent::kQueuePairFatal;
      info.queue_pair_number = event.element.qp->qp_num;
      return info;
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
      const auto* target =
          static_cast<SharedReceivesTarget*>(static_cast<AsyncTarget*>(event.element.srq->srq_context));
      info.event = DeviceEvent::kReceiveLimit;
      info.shared_receives = target->handle();
      return info.shared_receives == nullptr ? std::nullopt : std::make_optional(info);
    }
    default:
      return std::nullopt;
  }
}

AsyncEvents::AsyncEvents(ibv_context* device, uint8_t port) : device_(device), port_(port), thread_({"ibv-events"}) {
  const int flags = fcntl(device_->async_fd, F_GETFL);
  PCHECK(flags >= 0 && fcntl(device_->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
  thread_.CallOn(
      [this] { watch_ = thread_.loop().Watch(device_->async_fd, EPOLLIN, [this](uint32_t seen) { Read(seen); }); });
}

AsyncEvents::~AsyncEvents() {
  thread_.CallOn([this] { watch_.Reset(); });
  thread_.Stop();
}

void AsyncEvents::OnFirstData(std::function<void(uint32_t queue_pair_number)> heard) {
  const base::MutexLock lock(heard_mutex_);
  first_data_ = std::move(heard);
}

void AsyncEvents::OnPathsChanged(std::function<void()> heard) {
  const base::MutexLock lock(heard_mutex_);
  paths_changed_ = std::move(heard);
}

void AsyncEvents::Forget(const SharedReceiveQueue* handle) {
  const base::MutexLock lock(handles_mutex_);
  watches_.Forget(handle);
}

void AsyncEvents::Read(uint32_t seen) {
  ibv_async_event event;
  while (ibv_get_async_event(device_, &event) == 0) {
    Handle(event);
    ibv_ack_async_event(&event);
  }
  if ((seen & (EPOLLERR | EPOLLHUP)) == 0) return;
  // The kernel closed the device: no event comes any more.
  DeviceEventInfo removed;
  removed.event = DeviceEvent::kRemoved;
  watches_.Tell(removed);
  watch_.Reset();
}

void AsyncEvents::Handle(const ibv_async_event& event) {
  if (event.event_type == IBV_EVENT_COMM_EST) {
    const base::MutexLock lock(heard_mutex_);
    if (first_data_) first_data_(event.element.qp->qp_num);
    return;
  }
  if (ChangesPaths(event, port_)) {
    const base::MutexLock lock(heard_mutex_);
    if (paths_changed_) paths_changed_();
  }
  if (AsyncTarget* target = TargetOf(event); target != nullptr) target->OnAsyncEvent(event.event_type);
  const base::MutexLock lock(handles_mutex_);
  if (const auto info = ToDeviceEvent(event, port_); info.has_value()) watches_.Tell(*info);
}

}  // namespace tokamak::verbs::ibv

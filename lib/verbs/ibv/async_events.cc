#include "lib/verbs/ibv/async_events.h"

#include <fcntl.h>
#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace tokamak::verbs::ibv {
namespace {

bool Same(const DeviceEventInfo& a, const DeviceEventInfo& b) {
  return a.event == b.event && a.queue_pair_number == b.queue_pair_number && a.shared_receives == b.shared_receives;
}

// Whom an event names; null for ports and the device.
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
  const bool ours = event.element.port_num == port;  // means something for ports' events only
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

class AsyncEvents::WatchHandle final : public DeviceWatch {
 public:
  WatchHandle(std::shared_ptr<void> keep, AsyncEvents& events, base::EventLoop& loop, DeviceEventHandler handler)
      : keep_(std::move(keep)), events_(events), handler_(std::make_shared<DeviceEventHandler>(std::move(handler))) {
    watcher_.signal = loop.MakeSignal([this] { Deliver(); });
    const std::lock_guard<std::mutex> lock(events_.mutex_);
    events_.watchers_.push_back(&watcher_);
  }

  ~WatchHandle() override {
    {
      const std::lock_guard<std::mutex> lock(events_.mutex_);
      std::vector<Watcher*>& all = events_.watchers_;
      all.erase(std::remove(all.begin(), all.end(), &watcher_), all.end());
    }
    if (dropped_ != nullptr) *dropped_ = true;
  }

 private:
  // The handler may drop this.
  void Deliver() {
    bool dropped = false;
    dropped_ = &dropped;
    const std::shared_ptr<DeviceEventHandler> handler = handler_;
    DeviceEventInfo event;
    // What comes meanwhile has raised the signal again.
    for (size_t left = waiting(); left > 0 && Next(&event); --left) {
      (*handler)(event);
      if (dropped) return;
    }
    dropped_ = nullptr;
  }

  size_t waiting() const {
    const std::lock_guard<std::mutex> lock(events_.mutex_);
    return watcher_.waiting.size();
  }

  // One at a time: what the handler drops is not heard of again.
  bool Next(DeviceEventInfo* event) {
    const std::lock_guard<std::mutex> lock(events_.mutex_);
    if (watcher_.waiting.empty()) return false;
    *event = watcher_.waiting.front();
    watcher_.waiting.erase(watcher_.waiting.begin());
    return true;
  }

  const std::shared_ptr<void> keep_;
  AsyncEvents& events_;
  const std::shared_ptr<DeviceEventHandler> handler_;
  Watcher watcher_;
  bool* dropped_ = nullptr;  // while Deliver runs
};

AsyncEvents::AsyncEvents(ibv_context* device, uint8_t port) : device_(device), port_(port), thread_({"ibv-events"}) {
  const int flags = fcntl(device_->async_fd, F_GETFL);
  PCHECK(flags >= 0 && fcntl(device_->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
  thread_.CallOn(
      [this] { watch_ = thread_.loop().Watch(device_->async_fd, EPOLLIN, [this](uint32_t seen) { Read(seen); }); });
}

AsyncEvents::~AsyncEvents() {
  CHECK(watchers_.empty()) << "a watch keeps its device";
  thread_.CallOn([this] { watch_.Reset(); });
  thread_.Stop();
}

std::unique_ptr<DeviceWatch> AsyncEvents::Watch(std::shared_ptr<void> keep, base::EventLoop& loop,
                                                DeviceEventHandler handler) {
  return std::make_unique<WatchHandle>(std::move(keep), *this, loop, std::move(handler));
}

void AsyncEvents::OnFirstData(std::function<void(uint32_t queue_pair_number)> heard) {
  const std::lock_guard<std::mutex> lock(first_data_mutex_);
  first_data_ = std::move(heard);
}

void AsyncEvents::Forget(const SharedReceiveQueue* handle) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Watcher* watcher : watchers_) {
    std::vector<DeviceEventInfo>& waiting = watcher->waiting;
    const auto names_it = [&](const DeviceEventInfo& info) { return info.shared_receives == handle; };
    waiting.erase(std::remove_if(waiting.begin(), waiting.end(), names_it), waiting.end());
  }
}

void AsyncEvents::Read(uint32_t seen) {
  ibv_async_event event;
  while (ibv_get_async_event(device_, &event) == 0) {
    Handle(event);
    ibv_ack_async_event(&event);
  }
  if ((seen & (EPOLLERR | EPOLLHUP)) == 0) return;
  // The kernel closed it: nothing comes any more.
  DeviceEventInfo removed;
  removed.event = DeviceEvent::kRemoved;
  const std::lock_guard<std::mutex> lock(mutex_);
  Tell(removed);
  watch_.Reset();
}

void AsyncEvents::Handle(const ibv_async_event& event) {
  if (event.event_type == IBV_EVENT_COMM_EST) {
    const std::lock_guard<std::mutex> lock(first_data_mutex_);
    if (first_data_) first_data_(event.element.qp->qp_num);
    return;
  }
  if (AsyncTarget* target = TargetOf(event); target != nullptr) target->OnAsyncEvent(event.event_type);
  // Under the mutex from here on, so that a handle is not told of once it was forgotten.
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const auto info = ToDeviceEvent(event, port_); info.has_value()) Tell(*info);
}

// With the mutex held.
void AsyncEvents::Tell(const DeviceEventInfo& event) {
  for (Watcher* watcher : watchers_) {
    std::vector<DeviceEventInfo>& waiting = watcher->waiting;
    // Up, down, up is three; but twice the same in a row is one.
    if (!waiting.empty() && Same(waiting.back(), event)) continue;
    if (waiting.size() >= kMaxWaiting) {
      LOG(ERROR) << "a device's watch does not listen: an event is lost";
      continue;
    }
    waiting.push_back(event);
    watcher->signal->Raise();
  }
}

}  // namespace tokamak::verbs::ibv

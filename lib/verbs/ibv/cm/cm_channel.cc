#include "lib/verbs/ibv/cm/cm_channel.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"

namespace tokamak::verbs::ibv {

absl::StatusOr<CmChannelHandle> OpenCmChannel() {
  CmChannelHandle channel(rdma_create_event_channel());
  if (channel == nullptr) {
    const int error = errno;
    return absl::UnavailableError(absl::StrCat(
        "rdma_cm: ", std::strerror(error),
        ": load the module rdma_ucm (modprobe rdma_ucm) and see that /dev/infiniband/rdma_cm may be opened, "
        "or exchange over TCP (--cm tcp)"));
  }
  const int flags = fcntl(channel->fd, F_GETFL);
  if (flags < 0 || fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return absl::InternalError(absl::StrCat("rdma_cm event channel: ", std::strerror(errno)));
  }
  return channel;
}

bool TakeCmEvent(rdma_event_channel* channel, CmEvent* event, void** context) {
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(channel, &raw) != 0) {
    if (errno != EAGAIN && errno != EINTR) PLOG(ERROR) << "rdma_get_cm_event";
    return false;
  }
  *event = CmEvent();
  event->type = raw->event;
  event->status = raw->status;
  event->id = raw->id;
  // librdmacm has exchanged the two for our side: we may ask for what the peer serves.
  event->peer_serves = raw->param.conn.initiator_depth;
  event->peer_asks = raw->param.conn.responder_resources;
  if (raw->param.conn.private_data != nullptr) {
    event->private_data_size = raw->param.conn.private_data_len;
    std::memcpy(event->bytes.data(), raw->param.conn.private_data, event->private_data_size);
  }
  *context = raw->event == RDMA_CM_EVENT_CONNECT_REQUEST ? raw->listen_id->context : raw->id->context;
  rdma_ack_cm_event(raw);
  return true;
}

absl::StatusOr<std::shared_ptr<CmChannel>> CmChannel::Open(os::EpollLoop& loop) {
  auto channel = OpenCmChannel();
  if (!channel.ok()) return channel.status();
  return std::make_shared<CmChannel>(loop, *std::move(channel));
}

CmChannel::CmChannel(os::EpollLoop& loop, CmChannelHandle channel)
    : loop_(loop),
      channel_(std::move(channel)),
      watch_(loop.Watch(channel_->fd, EPOLLIN, [this](uint32_t) { Read(); })) {}

void CmChannel::Read() {
  const std::shared_ptr<CmChannel> alive = shared_from_this();
  for (int i = 0; i < kEventsPerTurn; ++i) {
    CmEvent event;
    void* context = nullptr;
    if (!TakeCmEvent(channel_.get(), &event, &context)) return;
    if (context == nullptr) continue;
    static_cast<CmSink*>(context)->OnCmEvent(event);
  }
}

}  // namespace tokamak::verbs::ibv

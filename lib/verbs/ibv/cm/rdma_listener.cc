#include "lib/verbs/ibv/cm/rdma_listener.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/cm/rdma_rejection.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/socket_address.h"

namespace tokamak::verbs::ibv {

RdmaRequest::RdmaRequest(std::shared_ptr<RdmaCmCore> core, std::shared_ptr<Unanswered> unanswered, rdma_cm_id* id,
                         const Address& peer, const RdmaOffer& offer)
    : core_(std::move(core)), unanswered_(std::move(unanswered)), id_(id), peer_(peer), offer_(offer) {
  unanswered_->fetch_add(1, std::memory_order_relaxed);
}

RdmaRequest::~RdmaRequest() { Reject({}); }

rdma_cm_id* RdmaRequest::Answer() {
  Decided();
  return std::exchange(id_, nullptr);
}

void RdmaRequest::Decided() {
  if (!decided_.exchange(true)) unanswered_->fetch_sub(1, std::memory_order_relaxed);
}

absl::StatusOr<std::unique_ptr<Connection>> RdmaRequest::Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                                ConnectionHandler handler) {
  if (id_ == nullptr) return absl::FailedPreconditionError("this request has been answered");
  if (absl::Status status = CheckConnectOptions(options, kRdmaCmPrivateData); !status.ok()) return status;
  auto held = HeldQueuePair::Take(queue_pair);
  if (!held.ok()) return held.status();
  auto channel = core_->ChannelOf((*held)->loop());
  if (!channel.ok()) return channel.status();
  auto connection = std::make_unique<RdmaConnection>(core_, *std::move(channel), *std::move(held), peer_, options,
                                                     std::move(handler));
  if (absl::Status status = connection->Accept(Answer(), offer_); !status.ok()) return status;
  return connection;
}

void RdmaRequest::Reject(absl::Span<const uint8_t> private_data) {
  if (id_ == nullptr) return;
  CHECK_LE(private_data.size(), kRdmaCmPrivateData);
  rdma_cm_id* const id = Answer();
  if (rdma_reject(id, private_data.data(), static_cast<uint8_t>(private_data.size())) != 0) {
    LOG(DEBUG) << peer_.ToString() << " is not there any more to be rejected: " << ErrnoStatus(errno, "rdma_reject");
  }
  core_->departures().Destroy(id);
}

absl::StatusOr<std::unique_ptr<RdmaListener>> RdmaListener::Listen(std::shared_ptr<RdmaCmCore> core,
                                                                   std::shared_ptr<CmChannel> channel,
                                                                   const Address& address, RequestHandler handler) {
  std::unique_ptr<RdmaListener> listener(new RdmaListener(std::move(core), std::move(channel), std::move(handler)));
  void* const sink = static_cast<CmSink*>(listener.get());
  if (rdma_create_id(listener->channel_->handle(), &listener->id_, sink, RDMA_PS_TCP) != 0) {
    listener->id_ = nullptr;
    return ErrnoStatus(errno, "rdma_create_id");
  }
  SocketAddress where = ToSocketAddress(address);
  const auto failed = [&address](const char* call) -> absl::Status {
    const int error = errno;
    if (error == EADDRINUSE) {
      return absl::AlreadyExistsError(
          absl::StrCat("listen at ", address.ToString(),
                       ": the port is taken; end the program that has it, or choose another port"));
    }
    return ErrnoStatus(error, absl::StrCat(call, " ", address.ToString()));
  };
  if (rdma_bind_addr(listener->id_, where.get()) != 0) return failed("rdma_bind_addr");
  if (absl::Status status = listener->core_->CheckDevice(listener->id_); !status.ok()) return status;
  if (absl::Status status = listener->core_->SetTrafficClass(listener->id_); !status.ok()) return status;
  if (rdma_listen(listener->id_, 0) != 0) return failed("rdma_listen");  // 0: the kernel's most
  listener->address_ = address;
  listener->address_.port = ntohs(rdma_get_src_port(listener->id_));
  return listener;
}

RdmaListener::RdmaListener(std::shared_ptr<RdmaCmCore> core, std::shared_ptr<CmChannel> channel, RequestHandler handler)
    : core_(std::move(core)),
      channel_(std::move(channel)),
      unanswered_(std::make_shared<Unanswered>(0)),
      handler_(std::move(handler)) {}

RdmaListener::~RdmaListener() { Close(); }

// Done here and not by departures: the port must be free on return, and requests that were not
// presented, which would not move to another channel with the id, are rejected.
void RdmaListener::Close() {
  rdma_cm_id* const id = std::exchange(id_, nullptr);
  if (id != nullptr && rdma_destroy_id(id) != 0) PLOG(ERROR) << "rdma_destroy_id";
}

void RdmaListener::OnCmEvent(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) return Present(event);
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL && id_ != nullptr) {
    LOG(WARNING) << "device " << core_->options().device << " was removed: nobody hears at " << address_.ToString();
    return Close();
  }
  LOG(DEBUG) << address_.ToString() << ": " << EventText(event);
}

void RdmaListener::Present(const CmEvent& event) {
  const std::optional<Address> peer = FromSocketAddress(rdma_get_peer_addr(event.id));
  if (!peer || unanswered_->load(std::memory_order_relaxed) >= kMaxUnanswered) return Refuse(event.id);
  if (absl::Status status = core_->CheckDevice(event.id); !status.ok()) {
    LOG(WARNING) << "request from " << peer->ToString() << ": " << status;
    return Refuse(event.id);
  }
  if (absl::Status status = core_->departures().Keep(event.id); !status.ok()) {
    LOG(WARNING) << "request from " << peer->ToString() << ": " << status;
    return Refuse(event.id);
  }
  RdmaOffer offer;
  offer.carried = ReadCarried(event.private_data());
  offer.peer_serves = event.peer_serves;
  offer.peer_asks = event.peer_asks;
  const base::Lifetime::Watch watch = lifetime_.Watched();
  RequestHandler handler = std::move(handler_);  // it may drop this
  handler(std::make_unique<RdmaRequest>(core_, unanswered_, event.id, *peer, offer));
  if (watch.over()) return;
  handler_ = std::move(handler);
}

void RdmaListener::Refuse(rdma_cm_id* id) {
  rdma_reject(id, nullptr, 0);
  core_->departures().Destroy(id);
}

}  // namespace tokamak::verbs::ibv

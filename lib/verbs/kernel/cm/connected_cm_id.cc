#include "lib/verbs/kernel/cm/connected_cm_id.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/verbs/kernel/program/translate.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr uint8_t kRequestData = 56;
constexpr uint8_t kAnswerData = 196;
constexpr uint8_t kRejectionData = 148;

soft::AnyData ToData(const uint8_t* bytes, size_t length) {
  soft::AnyData data{};
  std::copy_n(bytes, std::min(length, data.size()), data.begin());
  return data;
}

// Exchanges the two for the program: it may have as many outstanding as its peer serves.
// (rdma_get_cm_event(3))
template <typename Message>
void TellReads(const Message& message, rdma_ucm_conn_param* connection) {
  connection->initiator_depth = message.responder_resources;
  connection->responder_resources = message.initiator_depth;
}

}  // namespace

ConnectedCmId::~ConnectedCmId() {
  CloseAll();
  if (device_ == nullptr) return;
  device_->nic().WithManager([this](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX {
    if (state_ == State::kAsked) manager.RejectOutside(request_->key, soft::RejMad());
    if (key != 0) manager.Forget(*this);
  });
}

// ---- Being asked.

ConnectedCmId::Listening::Listening(ConnectedCmId& id, UserDevice& device)
    : id_(id), device_(device), signal_(device.loop().MakeSignal([this] { Deliver(); })) {}

ConnectedCmId::Listening::~Listening() {
  if (!open_) return;
  device_.nic().WithManager([this](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX { manager.Forget(*this); });
}

int ConnectedCmId::Listening::Open(uint16_t port) {
  absl::StatusOr<uint16_t> opened = uint16_t{0};
  device_.nic().WithManager([&](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX {
    opened = manager.ListenOutside(*this, port);
    if (!opened.ok()) return;
    address_ = device_.nic().address();
    address_.port = *opened;
  });
  open_ = opened.ok();
  return ErrnoOf(opened.status());
}

void ConnectedCmId::Listening::Deliver() {
  for (;;) {
    std::optional<soft::PendingRequest> request;
    device_.nic().WithManager([&](soft::SoftConnectionManager& manager)
                                  REQUIRES_NIC_MUTEX { request = manager.TakeRequest(*this); });
    if (!request) return;
    id_.OnRequest(device_, *request);
  }
}

absl::StatusOr<uint16_t> ConnectedCmId::ChoosePort(soft::SoftConnectionManager& manager) const {
  return manager.ChoosePort();
}

int ConnectedCmId::Open(UserDevice& device, uint16_t* port, std::unique_ptr<Port>* opened) {
  auto listening = std::make_unique<Listening>(*this, device);
  if (const int error = listening->Open(*port)) return error;
  *port = listening->listens_at().port;
  *opened = std::move(listening);
  return 0;
}

void ConnectedCmId::OnRequest(UserDevice& device, const soft::PendingRequest& request) {
  const uint32_t handle = events_->NewHandle();
  if (handle == 0) {
    device.nic().WithManager([&](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX {
      manager.RejectOutside(request.key, soft::MakeRej(request.req, soft::RejectReason::kNoResources));
    });
    return;
  }
  auto asked = std::make_unique<ConnectedCmId>(*events_, devices_, handle, 0);
  asked->BecomeAsked(device, source_.port, request.peer);
  asked->request_ = request;
  device.nic().WithManager([&](soft::SoftConnectionManager& manager)
                               REQUIRES_NIC_MUTEX { asked->own_psn_ = manager.NewPsn(); });

  rdma_ucm_event_resp event = MakeEvent(CmEvent::kConnectRequest);
  event.id = handle;
  rdma_ucm_conn_param& connection = event.param.conn;
  const soft::ReqMad& req = request.req;
  connection.qp_num = req.queue_pair;
  connection.private_data_len = kRequestData;
  std::copy(request.private_data.begin(), request.private_data.end(), connection.private_data);
  TellReads(req, &connection);
  connection.flow_control = 1;
  connection.retry_count = req.retry_count;
  connection.rnr_retry_count = req.rnr_retry_count;
  connection.valid = 1;
  events_->Adopt(std::move(asked));
  events_->Raise(*this, event);
}

int ConnectedCmId::Accept(const rdma_ucm_conn_param& parameters, uint64_t uid) {
  if (parameters.valid == 0) {
    if (state_ != State::kAnswered) return EINVAL;
    absl::Status confirmed;
    device_->nic().WithManager([&](soft::SoftConnectionManager& manager)
                                   REQUIRES_NIC_MUTEX { confirmed = manager.ConfirmOutside(*this); });
    if (!confirmed.ok()) return EINVAL;
    state_ = State::kConnected;
    return 0;
  }
  if (state_ != State::kAsked) return EINVAL;
  uid_ = uid;
  offer_ = Offer(parameters);
  // The asking side decides the number of retries.
  offer_.reliability.retry_count = request_->req.retry_count;
  absl::Status accepted;
  device_->nic().WithManager([&](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX {
    accepted = manager.AcceptOutside(request_->key, *this, offer_);
  });
  if (!accepted.ok()) return EINVAL;
  state_ = State::kAccepted;
  return 0;
}

int ConnectedCmId::Reject(const rdma_ucm_reject& rejection) {
  if (state_ != State::kAsked) return EINVAL;
  soft::RejMad rej;
  rej.reason =
      rejection.reason == 0 ? soft::RejectReason::kConsumer : static_cast<soft::RejectReason>(rejection.reason);
  std::copy_n(rejection.private_data, std::min<size_t>(rejection.private_data_len, rej.private_data.size()),
              rej.private_data.begin());
  device_->nic().WithManager([&](soft::SoftConnectionManager& manager)
                                 REQUIRES_NIC_MUTEX { manager.RejectOutside(request_->key, rej); });
  state_ = State::kOver;
  return 0;
}

// ---- Asking.

soft::ConnectionOffer ConnectedCmId::Offer(const rdma_ucm_conn_param& parameters) const {
  const Limits& limits = device_->nic().limits();
  const auto most_reads = static_cast<uint8_t>(std::min<uint32_t>(limits.max_reads, UINT8_MAX));
  soft::ConnectionOffer offer;
  offer.queue_pair = parameters.qp_num;
  offer.receive_psn = own_psn_;
  offer.max_path_mtu = limits.active_mtu;
  offer.reliability.ack_timeout = AckTimeout(ack_timeout_);
  offer.reliability.retry_count = std::min<uint8_t>(parameters.retry_count, 7);
  offer.reliability.rnr_retry_count = std::min<uint8_t>(parameters.rnr_retry_count, 7);
  offer.reliability.reads_served = std::min(parameters.responder_resources, most_reads);
  offer.reliability.reads_outstanding = std::min(parameters.initiator_depth, most_reads);
  offer.private_data = ToData(parameters.private_data, parameters.private_data_len);
  return offer;
}

int ConnectedCmId::Connect(const rdma_ucm_conn_param& parameters) {
  if (state_ != State::kRouteResolved || parameters.valid == 0) return EINVAL;
  if (parameters.private_data_len > kRequestData) return EINVAL;
  absl::Status asked;
  device_->nic().WithManager([&](soft::SoftConnectionManager& manager) REQUIRES_NIC_MUTEX {
    own_psn_ = manager.NewPsn();
    offer_ = Offer(parameters);
    offer_.confirms = true;
    asked = manager.ConnectOutside(*this, destination_, offer_);
  });
  if (!asked.ok()) return EINVAL;
  state_ = State::kAsking;
  return 0;
}

// It is no error if the peer was faster, as in the kernel.
int ConnectedCmId::Disconnect() {
  if (state_ == State::kOver) return 0;
  if (state_ != State::kConnected && state_ != State::kAccepted && state_ != State::kAnswered) return EINVAL;
  device_->nic().WithManager([this](soft::SoftConnectionManager& manager)
                                 REQUIRES_NIC_MUTEX { manager.Forget(*this); });
  state_ = State::kOver;
  CmId::Raise(CmEvent::kDisconnected);
  return 0;
}

// No effect once the connection is over.
void ConnectedCmId::WatchOverPeer(uint32_t queue_pair) {
  if (device_->neighbours() == nullptr) return;
  peer_watch_ = device_->neighbours()->WatchOver(destination_, queue_pair, [this] { Disconnect(); });
}

void ConnectedCmId::Raise(CmEvent type, int status, const rdma_ucm_conn_param& connection) {
  rdma_ucm_event_resp event = MakeEvent(type, status);
  event.param.conn = connection;
  events_->Raise(*this, event);
}

void ConnectedCmId::Tell(const soft::ConnectionNews& news, const soft::ConnectionState& state) {
  using Kind = ConnectionEvent::Kind;
  rdma_ucm_conn_param connection{};
  connection.valid = 1;
  if (news.private_data) std::copy(news.private_data->begin(), news.private_data->end(), connection.private_data);
  const bool passive = request_.has_value();
  switch (news.kind) {
    case Kind::kEstablished:
      if (passive) {
        state_ = State::kConnected;
        WatchOverPeer(request_->req.queue_pair);
        return CmId::Raise(CmEvent::kEstablished);
      }
      peer_ = state;
      state_ = State::kAnswered;
      WatchOverPeer(peer_->rep().queue_pair);
      connection.private_data_len = kAnswerData;
      connection.qp_num = peer_->rep().queue_pair;
      TellReads(peer_->rep(), &connection);
      connection.flow_control = 1;
      connection.rnr_retry_count = peer_->rep().rnr_retry_count;
      return Raise(CmEvent::kConnectResponse, 0, connection);
    case Kind::kRejected:
      state_ = State::kOver;
      connection.private_data_len = kRejectionData;
      return Raise(CmEvent::kRejected, static_cast<int>(news.reason), connection);
    case Kind::kUnreachable:
      state_ = State::kOver;
      return CmId::Raise(CmEvent::kUnreachable, -ETIMEDOUT);
    case Kind::kDisconnected:
      state_ = State::kOver;
      return CmId::Raise(CmEvent::kDisconnected);
  }
}

// ---- What the program asks about it.

int ConnectedCmId::QueuePairAttributes(uint32_t state, ib_uverbs_qp_attr* attributes) const {
  if (device_ == nullptr) return EINVAL;
  *attributes = {};
  attributes->qp_state = state;
  attributes->port_num = kOnlyPort;
  const bool known = peer_.has_value() || request_.has_value();
  if (state == IBV_QPS_INIT) {
    attributes->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (known)
      attributes->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    return 0;
  }
  if (!known) return EINVAL;
  const soft::ReqMad* const req = request_ ? &request_->req : nullptr;
  if (state == IBV_QPS_RTR) {
    attributes->qp_attr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    attributes->ah_attr = Towards(destination_);
    attributes->path_mtu = req != nullptr ? req->mtu_code : MtuNumber(peer_->path_mtu());
    attributes->dest_qp_num = req != nullptr ? req->queue_pair : peer_->rep().queue_pair;
    attributes->rq_psn = own_psn_;
    attributes->max_dest_rd_atomic =
        req != nullptr ? req->initiator_depth : peer_->attributes().reliability.reads_served;
    return 0;
  }
  if (state == IBV_QPS_RTS) {
    attributes->qp_attr_mask =
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
    attributes->sq_psn = req != nullptr ? req->starting_psn : peer_->rep().starting_psn;
    attributes->timeout = ack_timeout_;
    attributes->retry_cnt = req != nullptr ? req->retry_count : offer_.reliability.retry_count;
    attributes->rnr_retry = req != nullptr ? req->rnr_retry_count : peer_->rep().rnr_retry_count;
    attributes->max_rd_atomic =
        req != nullptr ? req->responder_resources : peer_->attributes().reliability.reads_outstanding;
    return 0;
  }
  return EINVAL;
}

}  // namespace tokamak::verbs::kernel

#include "lib/verbs/user/cm_id.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/udp/udp_socket.h"
#include "lib/verbs/time_codes.h"
#include "lib/verbs/user/translate.h"

namespace tokamak::verbs::user {
namespace {

constexpr uint8_t kPort = 1;

// What the kernel's manager gives queue pairs: 2.1 s.
constexpr uint8_t kAckTimeoutCode = 19;
constexpr uint8_t kHopLimit = 64;

constexpr uint8_t kRequestData = 56;
constexpr uint8_t kAnswerData = 196;
constexpr uint8_t kRejectionData = 148;

bool IsLoopback(const Address& address) {
  static constexpr std::array<uint8_t, 16> kLoopback6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return address.is_ipv4() ? address.ip[12] == 127 : address.ip == kLoopback6;
}

// EINVAL: another family than the Internet's.
int ToAddress(const sockaddr* from, Address* to) {
  sockaddr_storage storage{};
  if (from->sa_family == AF_INET) {
    std::memcpy(&storage, from, sizeof(sockaddr_in));
  } else if (from->sa_family == AF_INET6) {
    std::memcpy(&storage, from, sizeof(sockaddr_in6));
  } else {
    return EINVAL;
  }
  *to = soft::FromSocketAddress(storage);
  return 0;
}

// A sockaddr_in6 of the ABI holds an address of either family. One that is not known is all zero.
sockaddr_in6 ToSockaddr(const Address& address) {
  sockaddr_storage storage{};
  soft::ToSocketAddress(address, 0, &storage);
  sockaddr_in6 out{};
  std::memcpy(&out, &storage, sizeof(out));
  return out;
}

// The address that packets to `destination` leave from, as the system's routes say.
std::optional<Address> SourceTowards(const Address& destination) {
  const int family = destination.is_ipv4() ? AF_INET : AF_INET6;
  const os::FileDescriptor probe(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Address far = destination;
  if (far.port == 0) far.port = soft::kRoceUdpPort;
  sockaddr_storage name{};
  const socklen_t length = soft::ToSocketAddress(far, 0, &name);
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) return std::nullopt;
  sockaddr_storage own{};
  socklen_t own_length = sizeof(own);
  if (getsockname(probe.get(), reinterpret_cast<sockaddr*>(&own), &own_length) != 0) return std::nullopt;
  Address source = soft::FromSocketAddress(own);
  source.port = 0;
  return source;
}

soft::AnyData ToData(const uint8_t* bytes, size_t length) {
  soft::AnyData data{};
  std::copy_n(bytes, std::min(length, data.size()), data.begin());
  return data;
}

}  // namespace

CmId::CmId(CmEvents& events, const std::vector<UserDevice*>& devices, uint32_t handle, uint64_t uid,
           uint16_t port_space)
    : events_(&events), devices_(devices), handle_(handle), uid_(uid), port_space_(port_space) {}

CmId::~CmId() {
  ports_.clear();
  if (device_ == nullptr) return;
  device_->nic().WithManager([this](soft::SoftConnectionManager& manager) {
    if (state_ == State::kAsked) manager.RejectOutside(request_->key, soft::RejMad());
    if (key != 0) manager.Forget(*this);
  });
}

UserDevice* CmId::DeviceAt(const Address& address) const {
  for (UserDevice* device : devices_) {
    if (device != nullptr && device->identity().address.ip == address.ip) return device;
  }
  return nullptr;
}

// Where no device has the address that the system would take, any will do that is of the family: it
// may be a loopback address, or one of several of this machine.
UserDevice* CmId::DeviceTowards(const Address& address) const {
  if (const std::optional<Address> source = SourceTowards(address)) {
    if (UserDevice* const device = DeviceAt(*source)) return device;
  }
  for (UserDevice* device : devices_) {
    if (device != nullptr && device->identity().address.is_ipv4() == address.is_ipv4()) return device;
  }
  return nullptr;
}

int CmId::Bind(const sockaddr* address) {
  if (state_ != State::kIdle) return EINVAL;
  Address bound;
  if (const int error = ToAddress(address, &bound)) return error;
  if (!bound.is_unspecified()) {
    device_ = DeviceAt(bound);
    if (device_ == nullptr && IsLoopback(bound)) device_ = DeviceTowards(bound);
    if (device_ == nullptr) return ENODEV;
  }
  source_ = bound;
  // Programs tell their peers the port before they listen.
  if (source_.port == 0) source_.port = ChoosePort();
  state_ = State::kBound;
  return 0;
}

// One that no device of ours listens at; 0 where there is none, and Listen says so.
uint16_t CmId::ChoosePort() const {
  for (UserDevice* device : devices_) {
    if (device == nullptr || (device_ != nullptr && device != device_)) continue;
    absl::StatusOr<uint16_t> port = uint16_t{0};
    device->nic().WithManager([&](soft::SoftConnectionManager& manager) { port = manager.ChoosePort(); });
    return port.value_or(0);
  }
  return 0;
}

int CmId::ResolveAddress(const sockaddr* source, const sockaddr* destination) {
  if (state_ == State::kIdle && source->sa_family != AF_UNSPEC) {
    if (const int error = Bind(source)) return error;
  }
  if (state_ != State::kIdle && state_ != State::kBound) return EINVAL;
  if (const int error = ToAddress(destination, &destination_)) return error;
  if (device_ == nullptr) device_ = DeviceTowards(destination_);
  if (device_ == nullptr) {
    Raise(CmEvent::kAddressError, -ENODEV);
    return 0;
  }
  source_.ip = device_->identity().address.ip;
  // A peer at a loopback address that no device has is this one's own.
  if (destination_.is_unspecified()) destination_.ip = source_.ip;
  state_ = State::kAddressResolved;
  Raise(CmEvent::kAddressResolved);
  return 0;
}

int CmId::ResolveRoute() {
  if (state_ != State::kAddressResolved) return EINVAL;
  state_ = State::kRouteResolved;
  Raise(CmEvent::kRouteResolved);
  return 0;
}

// ---- Being asked.

CmId::Port::Port(CmId& id, UserDevice& device)
    : id_(id), device_(device), signal_(device.loop().MakeSignal([this] { Deliver(); })) {}

CmId::Port::~Port() {
  if (!open_) return;
  device_.nic().WithManager([this](soft::SoftConnectionManager& manager) { manager.Forget(*this); });
}

int CmId::Port::Open(uint16_t port) {
  absl::StatusOr<uint16_t> opened = uint16_t{0};
  device_.nic().WithManager([&](soft::SoftConnectionManager& manager) {
    opened = manager.ListenOutside(*this, port);
    if (!opened.ok()) return;
    address_ = device_.nic().address();
    address_.port = *opened;
  });
  open_ = opened.ok();
  return ErrnoOf(opened.status());
}

void CmId::Port::Deliver() {
  for (;;) {
    std::optional<soft::PendingRequest> request;
    device_.nic().WithManager([&](soft::SoftConnectionManager& manager) { request = manager.TakeRequest(*this); });
    if (!request) return;
    id_.OnRequest(device_, *request);
  }
}

int CmId::Listen() {
  if (state_ == State::kIdle) state_ = State::kBound;
  if (state_ != State::kBound) return EINVAL;
  for (UserDevice* device : devices_) {
    if (device == nullptr || (device_ != nullptr && device != device_)) continue;
    auto port = std::make_unique<Port>(*this, *device);
    if (const int error = port->Open(source_.port)) {
      ports_.clear();
      return error;
    }
    source_.port = port->listens_at().port;
    ports_.push_back(std::move(port));
  }
  if (ports_.empty()) return ENODEV;
  state_ = State::kListening;
  return 0;
}

void CmId::OnRequest(UserDevice& device, const soft::PendingRequest& request) {
  CmId* const asked = events_->AddRequest(*this);
  if (asked == nullptr) {
    device.nic().WithManager([&](soft::SoftConnectionManager& manager) {
      manager.RejectOutside(request.key, soft::MakeRej(request.req, soft::RejectReason::kNoResources));
    });
    return;
  }
  asked->device_ = &device;
  asked->state_ = State::kAsked;
  asked->request_ = request;
  asked->source_ = device.identity().address;
  asked->source_.port = source_.port;
  asked->destination_ = request.peer;
  device.nic().WithManager([&](soft::SoftConnectionManager& manager) { asked->own_psn_ = manager.NewPsn(); });

  rdma_ucm_event_resp event{};
  event.uid = uid_;
  event.id = asked->handle_;
  event.event = static_cast<uint32_t>(CmEvent::kConnectRequest);
  rdma_ucm_conn_param& connection = event.param.conn;
  const soft::ReqMad& req = request.req;
  connection.qp_num = req.queue_pair;
  connection.private_data_len = kRequestData;
  std::copy(request.private_data.begin(), request.private_data.end(), connection.private_data);
  connection.responder_resources = req.responder_resources;
  connection.initiator_depth = req.initiator_depth;
  connection.flow_control = 1;
  connection.retry_count = req.retry_count;
  connection.rnr_retry_count = req.rnr_retry_count;
  connection.valid = 1;
  events_->Raise(*this, event);
}

int CmId::Accept(const rdma_ucm_conn_param& parameters, uint64_t uid) {
  if (parameters.valid == 0) {
    if (state_ != State::kAnswered) return EINVAL;
    absl::Status confirmed;
    device_->nic().WithManager(
        [&](soft::SoftConnectionManager& manager) { confirmed = manager.ConfirmOutside(*this); });
    if (!confirmed.ok()) return EINVAL;
    state_ = State::kConnected;
    return 0;
  }
  if (state_ != State::kAsked) return EINVAL;
  uid_ = uid;
  offer_ = Offer(parameters);
  // Of the retries the one that asked decides.
  offer_.reliability.retry_count = request_->req.retry_count;
  absl::Status accepted;
  device_->nic().WithManager(
      [&](soft::SoftConnectionManager& manager) { accepted = manager.AcceptOutside(request_->key, *this, offer_); });
  if (!accepted.ok()) return EINVAL;
  state_ = State::kAccepted;
  return 0;
}

int CmId::Reject(const rdma_ucm_reject& rejection) {
  if (state_ != State::kAsked) return EINVAL;
  soft::RejMad rej;
  rej.reason =
      rejection.reason == 0 ? soft::RejectReason::kConsumer : static_cast<soft::RejectReason>(rejection.reason);
  std::copy_n(rejection.private_data, std::min<size_t>(rejection.private_data_len, rej.private_data.size()),
              rej.private_data.begin());
  device_->nic().WithManager([&](soft::SoftConnectionManager& manager) { manager.RejectOutside(request_->key, rej); });
  state_ = State::kOver;
  return 0;
}

// ---- Asking.

soft::ConnectionOffer CmId::Offer(const rdma_ucm_conn_param& parameters) const {
  const Limits& limits = device_->nic().limits();
  const auto most_reads = static_cast<uint8_t>(std::min<uint32_t>(limits.max_reads, UINT8_MAX));
  soft::ConnectionOffer offer;
  offer.queue_pair = parameters.qp_num;
  offer.receive_psn = own_psn_;
  offer.max_path_mtu = limits.active_mtu;
  offer.reliability.ack_timeout = AckTimeout(kAckTimeoutCode);
  offer.reliability.retry_count = std::min<uint8_t>(parameters.retry_count, 7);
  offer.reliability.rnr_retry_count = std::min<uint8_t>(parameters.rnr_retry_count, 7);
  offer.reliability.reads_served = std::min(parameters.responder_resources, most_reads);
  offer.reliability.reads_outstanding = std::min(parameters.initiator_depth, most_reads);
  offer.private_data = ToData(parameters.private_data, parameters.private_data_len);
  return offer;
}

int CmId::Connect(const rdma_ucm_conn_param& parameters) {
  if (state_ != State::kRouteResolved || parameters.valid == 0) return EINVAL;
  if (parameters.private_data_len > kRequestData) return EINVAL;
  absl::Status asked;
  device_->nic().WithManager([&](soft::SoftConnectionManager& manager) {
    own_psn_ = manager.NewPsn();
    offer_ = Offer(parameters);
    offer_.confirms = true;
    asked = manager.ConnectOutside(*this, destination_, offer_);
  });
  if (!asked.ok()) return EINVAL;
  state_ = State::kAsking;
  return 0;
}

int CmId::Disconnect() {
  if (state_ != State::kConnected && state_ != State::kAccepted && state_ != State::kAnswered) return EINVAL;
  device_->nic().WithManager([this](soft::SoftConnectionManager& manager) { manager.Forget(*this); });
  state_ = State::kOver;
  Raise(CmEvent::kDisconnected);
  return 0;
}

// Under the NIC's mutex.
void CmId::Tell(const soft::ConnectionNews& news, const soft::ConnectionState& state) {
  using Kind = ConnectionEvent::Kind;
  rdma_ucm_conn_param connection{};
  connection.valid = 1;
  if (news.private_data) std::copy(news.private_data->begin(), news.private_data->end(), connection.private_data);
  const bool passive = request_.has_value();
  switch (news.kind) {
    case Kind::kEstablished:
      if (passive) {
        state_ = State::kConnected;
        return Raise(CmEvent::kEstablished);
      }
      peer_ = state;
      state_ = State::kAnswered;
      connection.private_data_len = kAnswerData;
      connection.qp_num = peer_->rep().queue_pair;
      connection.responder_resources = peer_->rep().responder_resources;
      connection.initiator_depth = peer_->rep().initiator_depth;
      connection.flow_control = 1;
      connection.rnr_retry_count = peer_->rep().rnr_retry_count;
      return Raise(CmEvent::kConnectResponse, 0, &connection);
    case Kind::kRejected:
      state_ = State::kOver;
      connection.private_data_len = kRejectionData;
      return Raise(CmEvent::kRejected, static_cast<int>(news.reason), &connection);
    case Kind::kUnreachable:
      state_ = State::kOver;
      return Raise(CmEvent::kUnreachable, -ETIMEDOUT);
    case Kind::kDisconnected:
      state_ = State::kOver;
      return Raise(CmEvent::kDisconnected);
  }
}

void CmId::Raise(CmEvent type, int status, const rdma_ucm_conn_param* connection) {
  rdma_ucm_event_resp event{};
  event.uid = uid_;
  event.id = handle_;
  event.event = static_cast<uint32_t>(type);
  event.status = static_cast<uint32_t>(status);
  if (connection != nullptr) event.param.conn = *connection;
  events_->Raise(*this, event);
}

// ---- What the program asks about it.

int CmId::QueuePairAttributes(uint32_t state, ib_uverbs_qp_attr* attributes) const {
  if (device_ == nullptr) return EINVAL;
  *attributes = {};
  attributes->qp_state = state;
  attributes->port_num = kPort;
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
    attributes->ah_attr.is_global = 1;
    attributes->ah_attr.port_num = kPort;
    attributes->ah_attr.grh.hop_limit = kHopLimit;
    std::copy(destination_.ip.begin(), destination_.ip.end(), attributes->ah_attr.grh.dgid);
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
    attributes->timeout = kAckTimeoutCode;
    attributes->retry_cnt = req != nullptr ? req->retry_count : offer_.reliability.retry_count;
    attributes->rnr_retry = req != nullptr ? req->rnr_retry_count : peer_->rep().rnr_retry_count;
    attributes->max_rd_atomic =
        req != nullptr ? req->responder_resources : peer_->attributes().reliability.reads_outstanding;
    return 0;
  }
  return EINVAL;
}

rdma_ucm_query_route_resp CmId::Route() const {
  rdma_ucm_query_route_resp route{};
  route.src_addr = ToSockaddr(source_);
  if (state_ != State::kIdle && state_ != State::kBound && state_ != State::kListening) {
    route.dst_addr = ToSockaddr(destination_);
  }
  if (device_ == nullptr) return route;
  route.node_guid = htobe64(device_->identity().guid);
  route.port_num = kPort;
  if (state_ < State::kRouteResolved || state_ == State::kListening) return route;
  route.num_paths = 1;
  ib_user_path_rec& path = route.ib_route[0];
  std::copy(source_.ip.begin(), source_.ip.end(), path.sgid);
  std::copy(destination_.ip.begin(), destination_.ip.end(), path.dgid);
  path.pkey = htons(0xffff);
  path.mtu = MtuNumber(device_->nic().limits().active_mtu);
  path.mtu_selector = 2;
  path.rate_selector = 2;
  path.packet_life_time = kAckTimeoutCode - 1;
  path.packet_life_time_selector = 2;
  path.hop_limit = kHopLimit;
  path.reversible = 1;
  path.numb_path = 1;
  return route;
}

}  // namespace tokamak::verbs::user

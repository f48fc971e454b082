#include "lib/verbs/ibv/cm/rdma_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/cm/rdma_answer.h"
#include "lib/verbs/ibv/cm/rdma_rejection.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/ibv/translation/errors.h"
#include "lib/verbs/ibv/translation/socket_address.h"

namespace tokamak::verbs::ibv {

using Kind = ConnectionEvent::Kind;

RdmaConnection::RdmaConnection(std::shared_ptr<RdmaCmCore> core, std::shared_ptr<CmChannel> channel,
                               HeldQueuePair queue_pair, const Address& peer, const ConnectOptions& options,
                               ConnectionHandler handler)
    : core_(std::move(core)),
      channel_(std::move(channel)),
      queue_pair_(std::move(queue_pair), std::move(handler)),
      port_(core_->options().port()),
      peer_(peer),
      reliability_(options.reliability),
      own_mtu_(std::min(options.max_path_mtu, port_.active_mtu)),
      private_data_(options.private_data.begin(), options.private_data.end()),
      until_(channel_->loop().Now() + options.deadline) {}

RdmaConnection::~RdmaConnection() {
  if (phase_ == Phase::kNew || phase_ == Phase::kOver) return;
  queue_pair_.WalkToError();
  ReleaseId(phase_ == Phase::kUp || phase_ == Phase::kAnswered);
}

void RdmaConnection::Start() {
  deadline_ = channel_->loop().RunAt(until_, [this] { OnDeadline(); });
  const absl::Status status = ResolveAddress();
  if (!status.ok()) next_ = channel_->loop().Post([this, status] { End(Kind::kUnreachable, status); });
}

absl::Status RdmaConnection::Accept(rdma_cm_id* id, const RdmaOffer& offer) {
  active_ = false;
  id_ = id;
  phase_ = Phase::kAnswered;
  const ReliabilityOptions reliability =
      AgreeOnReads(reliability_, core_->options().max_reads, offer.peer_serves, offer.peer_asks);
  const absl::Status status = [&]() -> absl::Status {
    if (rdma_migrate_id(id, channel_->handle()) != 0) return ErrnoStatus(errno, "rdma_migrate_id");
    id->context = static_cast<CmSink*>(this);
    const auto route = RouteMtu();
    if (!route.ok()) return route.status();
    const auto mtu = AgreeOnPathMtu(own_mtu_, offer.carried.path_mtu, *route);
    if (!mtu.ok()) return mtu.status();
    path_mtu_ = *mtu;
    if (absl::Status walked = WalkToReadyToSend(reliability); !walked.ok()) return walked;
    const CarriedData bytes = Carry(private_data_, path_mtu_);
    rdma_conn_param parameters = Parameters(reliability, bytes);
    const absl::Status right =
        CheckAnswer(parameters, port_.link, queue_pair_->connection_state(), core_->options().max_reads);
    if (!right.ok()) return right;
    core_->AwaitData(queue_pair_->connection_number(), id);
    if (rdma_accept(id, &parameters) != 0) return AnswerStatus(errno, "rdma_accept");
    return absl::OkStatus();
  }();
  if (status.ok()) {
    if (port_.link == LinkKind::kIwarp) queue_pair_->WasConnected(reliability.reads_outstanding);
    deadline_ = channel_->loop().RunAt(until_, [this] { OnDeadline(); });
    return status;
  }
  phase_ = Phase::kOver;
  if (walked_) queue_pair_.WalkToError();
  rdma_reject(id, nullptr, 0);  // no effect if the peer gave up
  ReleaseId(false);
  return absl::Status(status.code(), absl::StrCat("accept ", peer_.ToString(), ": ", status.message()));
}

void RdmaConnection::OnCmEvent(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      const absl::Status status = event.type == RDMA_CM_EVENT_ADDR_RESOLVED ? ResolveRoute() : Ask();
      if (!status.ok()) End(absl::IsAborted(status) ? Kind::kRejected : Kind::kUnreachable, status);
      return;
    }
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      if (phase_ == Phase::kAsked) OnAnswer(event);
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      if (phase_ == Phase::kAsked) {
        OnAnswer(event);  // iWARP: the kernel did the rest
      } else if (phase_ == Phase::kAnswered) {
        Establish({});
      }
      return;
    case RDMA_CM_EVENT_REJECTED:
      return OnRejected(event);
    case RDMA_CM_EVENT_ADDR_ERROR:
      if (event.status == -ETIMEDOUT && phase_ == Phase::kAddress) return TryAgain({});
      [[fallthrough]];
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      return End(Kind::kUnreachable, absl::UnavailableError(absl::StrCat(peer_.ToString(), ": ", EventText(event))));
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return End(Kind::kDisconnected,
                 absl::UnavailableError(absl::StrCat(peer_.ToString(), " disconnected, or the network did")));
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return End(phase_ == Phase::kUp ? Kind::kDisconnected : Kind::kUnreachable,
                 absl::UnavailableError(absl::StrCat("device ", core_->options().device, " was removed")));
    default:
      LOG(DEBUG) << peer_.ToString() << ": " << EventText(event);
      return;
  }
}

void RdmaConnection::OnDeadline() {
  End(Kind::kUnreachable, absl::DeadlineExceededError(absl::StrCat(peer_.ToString(), " did not answer in time")));
}

absl::Status RdmaConnection::ResolveAddress() {
  phase_ = Phase::kAddress;
  void* const sink = static_cast<CmSink*>(this);
  if (rdma_create_id(channel_->handle(), &id_, sink, RDMA_PS_TCP) != 0) {
    id_ = nullptr;
    return ErrnoStatus(errno, "rdma_create_id");
  }
  // The kernel would take any device that reaches the peer, on one machine the peer's own.
  SocketAddress from = ToSocketAddress(core_->options().address), to = ToSocketAddress(peer_);
  const base::Time limit = std::min(until_, channel_->loop().Now() + address_patience_);
  address_patience_ = address_patience_ * 2;
  if (rdma_resolve_addr(id_, from.get(), to.get(), MillisecondsUntil(limit)) == 0) return absl::OkStatus();
  const int error = errno;
  const absl::Status status = ErrnoStatus(error, absl::StrCat("rdma_resolve_addr ", peer_.ToString()));
  if (error == EADDRNOTAVAIL || error == ENODEV) core_->NoteOwnAddress(status);
  return status;
}

absl::Status RdmaConnection::ResolveRoute() {
  if (phase_ != Phase::kAddress) return absl::OkStatus();
  phase_ = Phase::kRoute;
  const absl::Status ours = core_->CheckDevice(id_);
  core_->NoteOwnAddress(ours);
  if (!ours.ok()) return ours;
  if (absl::Status status = core_->SetTrafficClass(id_); !status.ok()) return status;
  if (TakeKnownPath()) return absl::OkStatus();
  if (rdma_resolve_route(id_, MillisecondsUntil(until_)) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat("rdma_resolve_route ", peer_.ToString()));
}

// InfiniBand: gives the kernel the path that the subnet manager gave before. The event is the same.
bool RdmaConnection::TakeKnownPath() {
  if (port_.link != LinkKind::kInfiniBand) return false;
  std::optional<ibv_path_data> path = core_->paths().Find(peer_);
  path_is_known_ =
      path.has_value() && rdma_set_option(id_, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &*path, sizeof(*path)) == 0;
  return path_is_known_;
}

void RdmaConnection::KeepPath() {
  if (port_.link != LinkKind::kInfiniBand || path_is_known_ || id_->route.num_paths < 1) return;
  core_->paths().Keep(peer_, ToPathData(id_->route.path_rec[0]));
}

absl::Status RdmaConnection::Ask() {
  if (phase_ != Phase::kRoute) return absl::OkStatus();
  phase_ = Phase::kAsked;
  KeepPath();
  const ReliabilityOptions reliability = AgreeOnReads(reliability_, core_->options().max_reads, 255, 255);
  const CarriedData bytes = Carry(private_data_, own_mtu_);
  rdma_conn_param parameters = Parameters(reliability, bytes);
  if (rdma_connect(id_, &parameters) == 0) return absl::OkStatus();
  if (errno == ECONNREFUSED) {  // SoftiWARP asks at once
    return absl::AbortedError(absl::StrCat(peer_.ToString(), " rejected: nobody listens at this port"));
  }
  return ErrnoStatus(errno, absl::StrCat("rdma_connect ", peer_.ToString()));
}

void RdmaConnection::OnAnswer(const CmEvent& event) {
  const Carried carried = ReadCarried(event.private_data());
  const absl::Status status = [&]() -> absl::Status {
    const auto route = RouteMtu();
    if (!route.ok()) return route.status();
    const auto mtu = KeepPathMtu(own_mtu_, carried.path_mtu, *route);
    if (!mtu.ok()) return mtu.status();
    path_mtu_ = *mtu;
    if (port_.link == LinkKind::kIwarp) {
      // Providers disagree on which of the event's two numbers is which.
      const uint8_t least = std::min(event.peer_serves, event.peer_asks);
      const ReliabilityOptions reliability = AgreeOnReads(reliability_, core_->options().max_reads, least, least);
      queue_pair_->WasConnected(reliability.reads_outstanding);
      return absl::OkStatus();
    }
    const ReliabilityOptions reliability =
        AgreeOnReads(reliability_, core_->options().max_reads, event.peer_serves, event.peer_asks);
    if (absl::Status walked = WalkToReadyToSend(reliability); !walked.ok()) return walked;
    return rdma_establish(id_) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "rdma_establish");
  }();
  if (status.ok()) return Establish(carried.private_data);
  rdma_reject(id_, nullptr, 0);  // the peer waits for our last word
  End(Kind::kUnreachable, status);
}

void RdmaConnection::OnRejected(const CmEvent& event) {
  if (active_ && port_.link != LinkKind::kIwarp && event.status == kStaleConnection) {
    // The peer's kernel still has our number from an earlier connection; it ends that, and has room
    // then.
    stale_delay_ = stale_delay_ * 2;
    return TryAgain(stale_delay_ / 2);
  }
  const Carried carried = ReadCarried(event.private_data());
  End(Kind::kRejected, absl::UnavailableError(absl::StrCat(peer_.ToString(), " rejected: ", EventText(event))),
      carried.private_data);
}

void RdmaConnection::TryAgain(base::Duration delay) {
  ReleaseId(false);
  phase_ = Phase::kAddress;
  next_ = channel_->loop().RunAfter(delay, [this] {
    if (absl::Status status = ResolveAddress(); !status.ok()) End(Kind::kUnreachable, status);
  });
}

// Returns the route's MTU in bytes: from InfiniBand's subnet manager, or of the asking side's RoCE
// port.
absl::StatusOr<uint32_t> RdmaConnection::RouteMtu() {
  if (port_.link == LinkKind::kIwarp) return kMaxMtu;
  Step step;
  if (absl::Status status = AskKernel(IBV_QPS_RTR, &step); !status.ok()) return status;
  return MtuBytes(step.attributes.path_mtu);
}

absl::Status RdmaConnection::AskKernel(ibv_qp_state state, Step* step) {
  CHECK(state == IBV_QPS_INIT || state == IBV_QPS_RTR || state == IBV_QPS_RTS) << state;  // the kernel knows no others
  step->attributes.qp_state = state;
  if (rdma_init_qp_attr(id_, &step->attributes, &step->mask) == 0) return absl::OkStatus();
  return active_ ? ErrnoStatus(errno, "rdma_init_qp_attr") : AnswerStatus(errno, "rdma_init_qp_attr");
}

absl::Status RdmaConnection::WalkToReadyToSend(const ReliabilityOptions& reliability) {
  if (port_.link == LinkKind::kIwarp) return absl::OkStatus();
  walked_ = true;
  if (port_.link == LinkKind::kInfiniBand) {  // the route's partition may differ from the queue pair's
    Step init;
    if (absl::Status status = AskKernel(IBV_QPS_INIT, &init); !status.ok()) return status;
    init.attributes.qp_access_flags = AccessFlags(queue_pair_->remote_access());
    init.mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_PKEY_INDEX;
    if (absl::Status status = queue_pair_.Walk(init); !status.ok()) return status;
  }
  Step receive, send;
  if (absl::Status status = AskKernel(IBV_QPS_RTR, &receive); !status.ok()) return status;
  peer_queue_pair_ = receive.attributes.dest_qp_num;
  if (absl::Status status = OwnReadyToReceive(port_, path_mtu_, reliability, &receive); !status.ok()) return status;
  if (absl::Status status = queue_pair_.Walk(receive); !status.ok()) return status;
  if (absl::Status status = AskKernel(IBV_QPS_RTS, &send); !status.ok()) return status;
  if (absl::Status status = OwnReadyToSend(reliability, &send); !status.ok()) return status;
  return queue_pair_.Walk(send);
}

rdma_conn_param RdmaConnection::Parameters(const ReliabilityOptions& reliability, const CarriedData& bytes) const {
  rdma_conn_param parameters{};
  parameters.private_data = bytes.data();
  parameters.private_data_len = static_cast<uint8_t>(bytes.size());
  parameters.responder_resources = reliability.reads_served;
  parameters.initiator_depth = reliability.reads_outstanding;
  parameters.flow_control = 1;
  parameters.retry_count = reliability.retry_count;
  parameters.rnr_retry_count = reliability.rnr_retry_count;
  parameters.srq = queue_pair_->shares_receives() ? 1 : 0;
  parameters.qp_num = queue_pair_->connection_number();
  return parameters;
}

int RdmaConnection::MillisecondsUntil(base::Time time) const {
  return static_cast<int>(std::clamp<int64_t>((time - channel_->loop().Now()).milliseconds(), 1, INT32_MAX));
}

void RdmaConnection::Establish(absl::Span<const uint8_t> private_data) {
  phase_ = Phase::kUp;
  deadline_.Cancel();
  if (!active_) core_->StopAwaiting(queue_pair_->connection_number());
  queue_pair_.TellEstablished(private_data, path_mtu_, peer_queue_pair_);
}

void RdmaConnection::End(Kind kind, absl::Status why, absl::Span<const uint8_t> private_data) {
  if (phase_ == Phase::kOver) return;
  const bool peer_may_wait = phase_ == Phase::kUp || phase_ == Phase::kAnswered;
  phase_ = Phase::kOver;
  if (kind == Kind::kUnreachable) core_->paths().Forget(peer_);
  deadline_.Cancel();
  next_.Cancel();
  // A queue pair that got no answer stays in Init, good for another attempt.
  if (walked_ || peer_may_wait || kind == Kind::kDisconnected) queue_pair_.WalkToError();
  ReleaseId(peer_may_wait);
  queue_pair_.TellEnd(kind, std::move(why), private_data);
}

void RdmaConnection::ReleaseId(bool disconnect) {
  if (id_ == nullptr) return;
  if (!active_) core_->StopAwaiting(queue_pair_->connection_number());
  rdma_cm_id* const id = std::exchange(id_, nullptr);
  if (disconnect) {
    core_->departures().Disconnect(id);  // also answers the peer's goodbye
  } else {
    core_->departures().Destroy(id);
  }
}

}  // namespace tokamak::verbs::ibv

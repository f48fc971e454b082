#include "lib/verbs/ibv/translation/attributes.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/verbs/time_codes.h"

namespace tokamak::verbs::ibv {
namespace {

constexpr int kReadyToReceiveMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kReadyToSendMask =
    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr uint32_t k24Bits = 0xffffff;
constexpr size_t kSubnetPrefix = 8;  // bytes of a GID

bool InOneSubnet(const LocalPort& port, const PeerPort& peer) {
  return std::equal(port.gid.begin(), port.gid.begin() + kSubnetPrefix, peer.gid.begin());
}

bool NeedsGlobalRoute(const LocalPort& port, const PeerPort& peer) {
  return port.link == LinkKind::kRoce || port.global_routes_only || !InOneSubnet(port, peer);
}

// A LID is valid in its own subnet only.
absl::Status CheckLid(const LocalPort& port, const PeerPort& peer) {
  if (port.link != LinkKind::kInfiniBand) return absl::OkStatus();
  if (peer.lid == 0) return absl::InvalidArgumentError("InfiniBand: the peer's LID is needed, and it told none");
  if (InOneSubnet(port, peer) || port.router_lid.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "InfiniBand: the peer is in another subnet, so packets go to a router's LID, which only rdma_cm finds out: "
      "--cm rdma, or --router-lid (saquery -p says it)");
}

absl::Status CheckLink(const LocalPort& port) {
  if (port.link != LinkKind::kIwarp) return absl::OkStatus();
  return absl::UnimplementedError("iWARP: a queue pair is connected by the kernel's connection manager only (rdma_cm)");
}

absl::Status CheckMtu(const LocalPort& port, uint32_t path_mtu) {
  if (MtuBytes(MtuCode(path_mtu)) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("path MTU ", path_mtu, " is none of 256, 512, 1024, 2048, 4096"));
  }
  if (path_mtu > port.active_mtu) {
    return absl::InvalidArgumentError(absl::StrCat("path MTU ", path_mtu, " is more than the ", port.active_mtu,
                                                   " of port ", port.number, ": its packets would be lost silently"));
  }
  return absl::OkStatus();
}

absl::Status CheckRetries(const ReliabilityOptions& reliability) {
  if (reliability.retry_count <= kMaxRetryCount && reliability.rnr_retry_count <= kMaxRetryCount) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("retry counts end at ", kMaxRetryCount, ": 7 means for ever, and then no wait would end"));
}

ibv_ah_attr RouteTo(const LocalPort& port, const PeerPort& peer) {
  ibv_ah_attr route{};
  route.port_num = port.number;
  route.sl = port.service_level.value_or(0);
  if (port.link == LinkKind::kInfiniBand) {
    route.dlid = InOneSubnet(port, peer) ? peer.lid : port.router_lid.value_or(0);
    route.src_path_bits = port.path_bits;
  }
  if (NeedsGlobalRoute(port, peer)) {
    route.is_global = 1;
    std::memcpy(route.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    route.grh.sgid_index = port.gid_index;
    route.grh.hop_limit = port.hop_limit;
    route.grh.traffic_class = port.traffic_class.value_or(0);
    route.grh.flow_label = port.flow_label;
  }
  return route;
}

void Receive(uint32_t path_mtu, const ReliabilityOptions& reliability, ibv_qp_attr* attributes) {
  attributes->qp_state = IBV_QPS_RTR;
  attributes->path_mtu = MtuCode(path_mtu);
  attributes->max_dest_rd_atomic = reliability.reads_served;
  attributes->min_rnr_timer = NotReadyCode(reliability.rnr_delay);
}

void Send(const ReliabilityOptions& reliability, ibv_qp_attr* attributes) {
  attributes->qp_state = IBV_QPS_RTS;
  attributes->timeout = AckTimeoutCode(reliability.ack_timeout);
  attributes->retry_cnt = reliability.retry_count;
  attributes->rnr_retry = reliability.rnr_retry_count;
  attributes->max_rd_atomic = reliability.reads_outstanding;
}

}  // namespace

const char* ToString(LinkKind kind) {
  switch (kind) {
    case LinkKind::kInfiniBand:
      return "InfiniBand";
    case LinkKind::kRoce:
      return "RoCE";
    case LinkKind::kIwarp:
      return "iWARP";
  }
  return "unknown link";
}

ibv_mtu MtuCode(uint32_t bytes) {
  switch (bytes) {
    case 256:
      return IBV_MTU_256;
    case 512:
      return IBV_MTU_512;
    case 1024:
      return IBV_MTU_1024;
    case 2048:
      return IBV_MTU_2048;
    case 4096:
      return IBV_MTU_4096;
  }
  return ibv_mtu{};
}

uint32_t MtuBytes(ibv_mtu code) { return code >= IBV_MTU_256 && code <= IBV_MTU_4096 ? 128u << code : 0; }

unsigned int AccessFlags(Access access) {
  unsigned int flags = 0;
  if ((access & kLocalWrite) != 0) flags |= IBV_ACCESS_LOCAL_WRITE;
  if ((access & kRemoteWrite) != 0) flags |= IBV_ACCESS_REMOTE_WRITE;
  if ((access & kRemoteRead) != 0) flags |= IBV_ACCESS_REMOTE_READ;
  if ((access & kRemoteAtomic) != 0) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kWindowBind) != 0) flags |= IBV_ACCESS_MW_BIND;
  return flags;
}

QueuePairState StateOf(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_RESET:
      return QueuePairState::kReset;
    case IBV_QPS_INIT:
      return QueuePairState::kInit;
    case IBV_QPS_RTR:
      return QueuePairState::kReadyToReceive;
    case IBV_QPS_RTS:
      return QueuePairState::kReadyToSend;
    default:
      return QueuePairState::kError;
  }
}

Step ResetStep() {
  Step step;
  step.attributes.qp_state = IBV_QPS_RESET;
  step.mask = IBV_QP_STATE;
  return step;
}

Step ErrorStep() {
  Step step;
  step.attributes.qp_state = IBV_QPS_ERR;
  step.mask = IBV_QP_STATE;
  return step;
}

Step InitStep(const LocalPort& port, Access remote_access) {
  Step step;
  step.attributes.qp_state = IBV_QPS_INIT;
  step.attributes.qp_access_flags = AccessFlags(remote_access);
  step.mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  if (port.link == LinkKind::kIwarp) return step;
  step.attributes.port_num = port.number;
  step.attributes.pkey_index = port.pkey_index;
  step.mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX;
  return step;
}

absl::StatusOr<Step> ReadyToReceiveStep(const LocalPort& port, const PeerPort& peer, const Agreement& agreement) {
  if (absl::Status status = CheckLink(port); !status.ok()) return status;
  if (absl::Status status = CheckMtu(port, agreement.path_mtu); !status.ok()) return status;
  if (absl::Status status = CheckLid(port, peer); !status.ok()) return status;
  Step step;
  Receive(agreement.path_mtu, agreement.reliability, &step.attributes);
  step.attributes.ah_attr = RouteTo(port, peer);
  step.attributes.dest_qp_num = agreement.peer_number & k24Bits;
  step.attributes.rq_psn = agreement.receive_psn & k24Bits;
  step.mask = kReadyToReceiveMask;
  return step;
}

absl::StatusOr<Step> ReadyToSendStep(const LocalPort& port, const Agreement& agreement) {
  if (absl::Status status = CheckLink(port); !status.ok()) return status;
  if (absl::Status status = CheckRetries(agreement.reliability); !status.ok()) return status;
  Step step;
  Send(agreement.reliability, &step.attributes);
  step.attributes.sq_psn = agreement.send_psn & k24Bits;
  step.mask = kReadyToSendMask;
  return step;
}

absl::Status OwnReadyToReceive(const LocalPort& port, uint32_t path_mtu, const ReliabilityOptions& reliability,
                               Step* step) {
  if (absl::Status status = CheckLink(port); !status.ok()) return status;
  if (absl::Status status = CheckMtu(port, path_mtu); !status.ok()) return status;
  ibv_ah_attr& route = step->attributes.ah_attr;
  if (port.gid_index_is_fixed && route.is_global != 0 && route.grh.sgid_index != port.gid_index) {
    return absl::FailedPreconditionError(absl::StrCat("rdma_cm speaks from GID ", route.grh.sgid_index, ", not from @",
                                                      port.gid_index,
                                                      ", which was asked for: leave it out, or --cm tcp"));
  }
  Receive(path_mtu, reliability, &step->attributes);
  route.sl = port.service_level.value_or(route.sl);
  if (route.is_global != 0) route.grh.traffic_class = port.traffic_class.value_or(route.grh.traffic_class);
  step->mask = kReadyToReceiveMask;
  return absl::OkStatus();
}

absl::Status OwnReadyToSend(const ReliabilityOptions& reliability, Step* step) {
  if (absl::Status status = CheckRetries(reliability); !status.ok()) return status;
  Send(reliability, &step->attributes);
  step->mask = kReadyToSendMask;
  return absl::OkStatus();
}

}  // namespace tokamak::verbs::ibv

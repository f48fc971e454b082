// What ibv_modify_qp is told at each step of a reliable connection, for InfiniBand, RoCE and iWARP:
// pure functions.
//
//   Init              port, partition, rights                               iWARP: the rights only
//   ReadyToReceive    the route to the peer, its number, path MTU, reads    iWARP: the kernel's own manager goes these two steps
//   ReadyToSend       time-outs, retries, first PSN, reads
//
// The route of InfiniBand is a LID, and the GID as well across subnets or where the port asks for
// it; that of RoCE is always the GID. Retry counts are explicit and never 7, which means "for
// ever".
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

enum class LinkKind : uint8_t { kInfiniBand, kRoce, kIwarp };
const char* ToString(LinkKind kind);

using Gid = std::array<uint8_t, 16>;

// Our end of a route: a port of the device, and how its packets are to travel.
struct LocalPort {
  LinkKind link = LinkKind::kRoce;
  uint8_t number = 1;  // of the port
  Gid gid{};
  uint8_t gid_index = 0;
  bool gid_index_is_fixed = false;       // it was asked for, and no other entry will do
  bool global_routes_only = false;       // InfiniBand: a GRH is demanded (IBV_QPF_GRH_REQUIRED)
  uint16_t lid = 0;                      // InfiniBand
  uint8_t path_bits = 0;                 // InfiniBand: added to the LID where the port has several
  uint16_t pkey_index = 0;               // the partition
  std::optional<uint8_t> service_level;  // 0..15; for RoCE the priority
  std::optional<uint8_t> traffic_class;  // with a GRH; for RoCE v2 the IP header's DSCP and ECN
  uint32_t flow_label = 0;               // with a GRH, 20 bits; RoCE v2 derives its source port from it
  uint8_t hop_limit = 64;                // with a GRH
  std::optional<uint16_t> router_lid;    // InfiniBand: where packets for peers of other subnets go
  uint32_t active_mtu = 1024;            // bytes; at most what it may be by DeviceOptions
};

// The peer's end.
struct PeerPort {
  Gid gid{};
  uint16_t lid = 0;  // InfiniBand
};

// A step for ibv_modify_qp: the attributes, and which of them count.
struct Step {
  ibv_qp_attr attributes{};
  int mask = 0;
};

// What both sides of a connection agreed on.
struct Agreement {
  uint32_t peer_number = 0;        // of its queue pair, 24 bits
  uint32_t receive_psn = 0;        // the first that the peer sends, 24 bits
  uint32_t send_psn = 0;           // the first that we send, 24 bits
  uint32_t path_mtu = 1024;        // bytes
  ReliabilityOptions reliability;  // ours, its reads lowered to what the peer serves and asks for
};

// IBV_MTU_* for a path MTU in bytes, and back; 0 for what is none.
ibv_mtu MtuCode(uint32_t bytes);
uint32_t MtuBytes(ibv_mtu code);

// Draining, and whatever else is past ReadyToSend, is Error to us.
QueuePairState StateOf(ibv_qp_state state);

// IBV_ACCESS_* for what peers and we may do.
unsigned int AccessFlags(Access access);

// Any state may go to these.
Step ResetStep();
Step ErrorStep();

Step InitStep(const LocalPort& port, Access remote_access);

// kInvalidArgument: a path MTU that is none, or more than the port has now (packets that the link
// does not carry vanish without an error); an InfiniBand peer without a LID; retry counts beyond
// kMaxRetryCount. kFailedPrecondition: an InfiniBand peer of another subnet, and no router is
// known. kUnimplemented: iWARP.
absl::StatusOr<Step> ReadyToReceiveStep(const LocalPort& port, const PeerPort& peer, const Agreement& agreement);
absl::StatusOr<Step> ReadyToSendStep(const LocalPort& port, const Agreement& agreement);

// Puts what we decide into steps whose route, PSNs and peer rdma_init_qp_attr filled in, and leaves
// out what it fills in for nobody (alternate paths, and what an old kernel adds by mistake). Of the
// route we decide the service level and the traffic class, where `port` has them: the kernel knows
// no way to ask for the one, and gives the passive side the other of the side that asked. Errors as
// above; kFailedPrecondition: the route is from another GID than the one that was asked for.
absl::Status OwnReadyToReceive(const LocalPort& port, uint32_t path_mtu, const ReliabilityOptions& reliability,
                               Step* step);
absl::Status OwnReadyToSend(const ReliabilityOptions& reliability, Step* step);

}  // namespace tokamak::verbs::ibv

// Attributes of ibv_modify_qp for each step of a reliable connection, for InfiniBand, RoCE and
// iWARP: pure functions.
//
//   Init              port, partition, rights; iWARP: the rights only
//   ReadyToReceive    the route to the peer, its number, path MTU, reads
//   ReadyToSend       time-outs, retries, first PSN, reads
//
// With iWARP the kernel's own manager takes the last two steps.
//
// InfiniBand's route is a LID, and the GID across subnets or if the port demands it; RoCE's is
// always the GID. Retry counts are never 7, "for ever".
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

struct LocalPort {
  LinkKind link = LinkKind::kRoce;
  uint8_t number = 1;  // of the port
  Gid gid{};
  uint8_t gid_index = 0;
  bool gid_index_is_fixed = false;       // true if asked for: no other entry will do
  bool global_routes_only = false;       // InfiniBand: true if a GRH is demanded (IBV_QPF_GRH_REQUIRED)
  uint16_t lid = 0;                      // InfiniBand
  uint8_t path_bits = 0;                 // InfiniBand: added to the LID if the port has several
  uint16_t pkey_index = 0;               // the partition
  std::optional<uint8_t> service_level;  // 0..15; for RoCE the priority
  std::optional<uint8_t> traffic_class;  // with a GRH; for RoCE v2 the IP header's DSCP and ECN
  uint32_t flow_label = 0;               // with a GRH, 20 bits; RoCE v2 derives its source port from it
  uint8_t hop_limit = 64;                // with a GRH
  std::optional<uint16_t> router_lid;    // InfiniBand: where packets for other subnets go
  uint32_t active_mtu = 1024;            // bytes; at most the limit of DeviceOptions
};

struct PeerPort {
  Gid gid{};
  uint16_t lid = 0;  // InfiniBand
};

struct Step {
  ibv_qp_attr attributes{};
  int mask = 0;
};

struct Agreement {
  uint32_t peer_number = 0;        // 24 bits
  uint32_t receive_psn = 0;        // the first PSN that the peer sends, 24 bits
  uint32_t send_psn = 0;           // the first PSN that we send, 24 bits
  uint32_t path_mtu = 1024;        // bytes
  ReliabilityOptions reliability;  // ours, with the reads agreed on
};

// Returns IBV_MTU_* of a path MTU in bytes, and back; 0 for any other number.
ibv_mtu MtuCode(uint32_t bytes);
uint32_t MtuBytes(ibv_mtu code);

// Maps Draining, and any other state past ReadyToSend, to Error.
QueuePairState StateOf(ibv_qp_state state);

// Returns IBV_ACCESS_* for the rights of peers and our own.
unsigned int AccessFlags(Access access);

// Any state may go to these.
Step ResetStep();
Step ErrorStep();

Step InitStep(const LocalPort& port, Access remote_access);

// kInvalidArgument: no valid path MTU, or more than the port's (too large packets vanish without an
// error); an InfiniBand peer without a LID; retry counts beyond kMaxRetryCount.
// kFailedPrecondition: an InfiniBand peer of another subnet, without a known router.
// kUnimplemented: iWARP.
absl::StatusOr<Step> ReadyToReceiveStep(const LocalPort& port, const PeerPort& peer, const Agreement& agreement);
absl::StatusOr<Step> ReadyToSendStep(const LocalPort& port, const Agreement& agreement);

// Puts our choices into steps whose route, PSNs and peer rdma_init_qp_attr filled in, and leaves
// out its attributes that we never use (alternate paths, and what an old kernel adds by mistake).
// Service level and traffic class are `port`'s, if set: the kernel takes no service level, and
// gives the passive side the asking side's traffic class. Errors as above; kFailedPrecondition: a
// route from another GID than the one asked for.
absl::Status OwnReadyToReceive(const LocalPort& port, uint32_t path_mtu, const ReliabilityOptions& reliability,
                               Step* step);
absl::Status OwnReadyToSend(const ReliabilityOptions& reliability, Step* step);

}  // namespace tokamak::verbs::ibv

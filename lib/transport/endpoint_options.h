// EndpointOptions are the shape of an endpoint: slots, queue pairs, chunks, bounds and patience.
#pragma once

#include <cstdint>

#include "lib/base/time.h"
#include "lib/transport/limits.h"
#include "lib/transport/peer_security.h"
#include "lib/transport/policy/policy.h"
#include "lib/verbs/time_codes.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

struct EndpointOptions {
  Policy policy;
  bool adaptive_policy = false;       // for pulls; starts from `policy` (adaptive_policy.h)
  uint32_t receive_slots = 128;       // of a busy connection
  uint32_t first_slots = 4;           // of a new or idle one; a window grows with use
  uint32_t slot_size = 16 * 1024;     // bytes of a message with its header, or of an eager chunk
  uint32_t bulk_queue_pairs = 1;      // per connection and rail
  uint32_t chunk_size = 1024 * 1024;  // bytes of a READ or WRITE request
  uint32_t chunks_in_flight = 8;      // per transfer
  // Transfers served, and transfers pulled, at once; further ones are refused (kResourceExhausted).
  // One peer is served 1/kPeerPart of them.
  uint32_t max_transfers = kMaxTransfers;
  base::Duration connect_deadline = kConnectDeadline;
  base::Duration serve_deadline = kServeDeadline;
  base::Duration idle_disconnect = base::Seconds(300);
  verbs::ReliabilityOptions reliability;
  // True if reliability.ack_timeout is only the upper bound of measured ones (ack_times.h). Ignored
  // where repeating is dangerous (Limits::repeats_may_fail).
  bool measures_ack_timeout = false;
  uint32_t trace_node = 0;  // TraceEvent::node
  PeerSecurity security;
};

// 4.096 us x 2^16: no rounding makes it longer.
constexpr base::Duration kLongestSuitableAckTimeout = verbs::AckTimeout(16);

// Returns the verbs' default, or more if the device may acknowledge late (Limits::ack_delay). That
// is a worst case, often by orders of magnitude (268 ms for hardware that takes microseconds), and
// a lost last packet costs a whole timeout: so all tries together last twice the report, or each
// where repeating is dangerous (Limits::repeats_may_fail).
base::Duration SuitableAckTimeout(const verbs::Limits& limits);

// Recognizes kernel devices without hardware by Limits::repeats_may_fail and drop_stops_transfers.
DeviceKind KindOf(bool is_rdma, const verbs::Limits& limits);

}  // namespace tokamak::transport

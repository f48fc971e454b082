// EndpointOptions say how an endpoint is shaped: slots, queue pairs, chunks, bounds and patience.
#pragma once

#include <cstdint>

#include "lib/base/time.h"
#include "lib/transport/limits.h"
#include "lib/transport/policy/policy.h"
#include "lib/verbs/time_codes.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

struct EndpointOptions {
  Policy policy;
  bool adaptive_policy = false;       // of pulls: `policy` is where it begins (adaptive_policy.h)
  uint32_t receive_slots = 128;       // control receives of a busy connection
  uint32_t first_slots = 4;           // of a new or idle one; a window grows with use
  uint32_t slot_size = 16 * 1024;     // bytes of one message: header and body, also the eager chunk
  uint32_t bulk_queue_pairs = 1;      // for each connection, on each rail
  uint32_t chunk_size = 1024 * 1024;  // bytes of one READ or WRITE request
  uint32_t chunks_in_flight = 8;      // for each transfer
  // Served at once, and pulled at once; further ones are refused (kResourceExhausted). One peer is
  // served at most a kPeerPart-th, so that the others find room.
  uint32_t max_transfers = kMaxTransfers;
  base::Duration connect_deadline = kConnectDeadline;
  base::Duration serve_deadline = kServeDeadline;
  base::Duration idle_disconnect = base::Seconds(300);
  verbs::ReliabilityOptions reliability;
  // reliability.ack_timeout is the most, and a connection gets what suits the answers of late
  // (ack_times.h). Not where repeating is dangerous (Limits::repeats_may_fail).
  bool measures_ack_timeout = false;
  uint32_t trace_node = 0;  // TraceEvent::node
};

// A device that asks for more gets this: 4.096 us x 2^16, which no rounding makes longer.
constexpr base::Duration kLongestSuitableAckTimeout = verbs::AckTimeout(16);

// The ack timeout for connections between such devices: the verbs' own default, or more where a
// device reports that it may take long to acknowledge (Limits::ack_delay). The report is a worst
// case, often by orders of magnitude (268 ms of hardware that takes microseconds), and a last
// packet that is lost costs a whole time-out. So all tries together last for twice the report, and
// not each of them; but each where repeating is dangerous (Limits::repeats_may_fail).
base::Duration SuitableAckTimeout(const verbs::Limits& limits);

// Whose built-in table suits it, by what it says of itself: the kernel's devices without hardware
// are known by what they lack (Limits::repeats_may_fail, Limits::drop_stops_transfers).
DeviceKind KindOf(bool is_rdma, const verbs::Limits& limits);

}  // namespace tokamak::transport

// WireTap sees every datagram that a fabric with a wire sends or receives.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

struct Datagram {
  base::Time time;
  Address source;  // ip and UDP port
  Address destination;
  uint16_t identification = 0;            // IPv4's, the one that the ICRC covers
  uint8_t traffic_class = 0;              // DSCP and ECN
  absl::Span<const PayloadSlice> pieces;  // the UDP payload, in order: BTH to ICRC
};

class WireTap {
 public:
  virtual ~WireTap() = default;

  // Runs on the fabric's loop, and must not call the fabric. The pieces live during the call only.
  virtual void Show(const Datagram& datagram) = 0;
};

}  // namespace tokamak::verbs::soft

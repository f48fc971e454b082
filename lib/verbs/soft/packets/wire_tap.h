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
  uint16_t identification = 0;            // IPv4's; the one that the ICRC covers
  uint8_t traffic_class = 0;              // DSCP and ECN, as IPv4's type of service has them
  absl::Span<const PayloadSlice> pieces;  // the bytes after the UDP header, in order: BTH to ICRC
};

class WireTap {
 public:
  virtual ~WireTap() = default;

  // Called on the fabric's loop. The pieces live during the call only; must not call the fabric.
  virtual void Show(const Datagram& datagram) = 0;
};

}  // namespace tokamak::verbs::soft

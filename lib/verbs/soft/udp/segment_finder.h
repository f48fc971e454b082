// SegmentFinder finds the end of the first of several datagrams behind each other.
//
// A local UDP_SEGMENT send reaches a raw socket as one IP packet, without the segments' length. At
// a datagram's end the ICRC of the bytes so far equals the next four, and hardly elsewhere. One
// pass tries all lengths: a CRC is linear, so the effect of the headers' length fields is a table.
// Law: nothing is allocated after construction.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/icrc.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::verbs::soft {

class SegmentFinder final {
 public:
  SegmentFinder();

  // Returns the length of the first datagram, ICRC included; 0 if there is none, or it is all of
  // `bytes`.
  uint32_t Find(const IcrcFlow& flow, uint16_t identification, absl::Span<const uint8_t> bytes) const;

 private:
  // By length in words: how the ICRC changes if the headers state it, and not kMinDatagram.
  std::array<uint32_t, kMaxDatagram / 4 + 1> effect_{};
};

}  // namespace tokamak::verbs::soft

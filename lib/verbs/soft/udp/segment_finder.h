// SegmentFinder tells where the first of several datagrams ends that lie behind each other.
//
// What a sender on this machine gave the kernel as one UDP_SEGMENT send reaches a raw socket as one
// IP packet, without a word of the segments' length. But there the ICRC of what came so far equals
// the next four bytes, and hardly anywhere else. One pass tries all lengths: a CRC is linear, so
// what the headers' length fields do to it is a table.
//
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

  // The length of the datagram at the start of `bytes`, ICRC included; 0 when there is none, or
  // when it is all there is.
  uint32_t Find(const IcrcFlow& flow, uint16_t identification, absl::Span<const uint8_t> bytes) const;

 private:
  // By length in words: the ICRC with headers that state this length, against that with headers
  // that state kMinDatagram.
  std::array<uint32_t, kMaxDatagram / 4 + 1> effect_{};
};

}  // namespace tokamak::verbs::soft

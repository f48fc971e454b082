// The ICRC closes every RoCEv2 packet: a CRC-32 over all that no router may change, from the IP
// header to the pad bytes.
//
// It covers the IP identification, which a UDP socket neither sets nor shows. A sender knows it
// (udp/udp_fabric.h); a receiver solves for it: a CRC is linear, so a wrong one changes it by a
// combination of 16 known words. docs/packets.md shows the bytes covered. (7.8.1, annex A17)
// Law: nothing here allocates.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/wire.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// One direction between two UDP ports: the constant part of its packets' ICRC.
class IcrcFlow final {
 public:
  // Addresses as on the wire, of one IP version. `dont_fragment`: IPv4's DF.
  IcrcFlow(const Address& source, const Address& destination, bool dont_fragment = true);

  // Returns the CRC over the pseudo header and `headers` (BTH and extended, at most
  // kMaxHeaderLength bytes). `datagram_length`: UDP payload, BTH to ICRC. IPv6 ignores
  // `identification`.
  uint32_t Start(uint16_t identification, absl::Span<const uint8_t> headers, uint32_t datagram_length) const;

  // Continues over payload and pad, in order. The last CRC is the ICRC, little-endian.
  static uint32_t Extend(uint32_t crc, const uint8_t* bytes, uint64_t length);

  // Returns the right ICRC of a datagram of at least BTH and ICRC.
  uint32_t OfDatagram(uint16_t identification, absl::Span<const uint8_t> datagram) const;

  bool is_ipv4() const { return is_ipv4_; }

 private:
  // Eight ones for InfiniBand's local route header, the largest IP header, and UDP's.
  static constexpr uint32_t kMaxPrefixLength = 8 + 40 + 8;

  bool is_ipv4_;
  uint32_t prefix_length_;
  std::array<uint8_t, kMaxPrefixLength> prefix_;
};

// Finds a packet's IPv4 identification.
class IdentificationSolver final {
 public:
  // `computed`: the ICRC for `assumed`; `received`: the packet's. Returns the identification that
  // makes them equal. A corrupt packet has none (a random error passes once in 65,536: try a likely
  // identification first), nor has a `datagram_length` beyond the longest packet.
  std::optional<uint16_t> Solve(uint16_t assumed, uint32_t computed, uint32_t received, uint32_t datagram_length);

 private:
  static constexpr uint32_t kBits = 16;

  // The CRC's change by each identification bit, in echelon form: of columns i and later, i alone
  // has bit pivot[i].
  struct Columns {
    uint32_t datagram_length = 0;
    std::array<uint32_t, kBits> column;
    std::array<uint16_t, kBits> identification;
    std::array<uint8_t, kBits> pivot;
  };

  static Columns Eliminate(uint32_t datagram_length);

  // By length.
  std::array<Columns, 64> cache_;
};

}  // namespace tokamak::verbs::soft

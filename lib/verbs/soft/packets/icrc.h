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
  // Addresses (IP and UDP port) are those on the wire, both IPv4 or both IPv6. `dont_fragment` is
  // IPv4's DF bit.
  IcrcFlow(const Address& source, const Address& destination, bool dont_fragment = true);

  // Returns the CRC over the pseudo header and `headers`: BTH and extended headers, at most
  // kMaxHeaderLength bytes. `datagram_length` counts the UDP payload, BTH to ICRC. IPv6 has no
  // `identification`.
  uint32_t Start(uint16_t identification, absl::Span<const uint8_t> headers, uint32_t datagram_length) const;

  // Continues over payload and pad, in order. The last CRC is the ICRC, to be stored little-endian.
  static uint32_t Extend(uint32_t crc, const uint8_t* bytes, uint64_t length);

  // Returns the ICRC that a datagram, at least a BTH and an ICRC long, should end with.
  uint32_t OfDatagram(uint16_t identification, absl::Span<const uint8_t> datagram) const;

  bool is_ipv4() const { return is_ipv4_; }

 private:
  // Eight bytes of ones in place of InfiniBand's local route header, the largest IP header, and
  // UDP's.
  static constexpr uint32_t kMaxPrefixLength = 8 + 40 + 8;

  bool is_ipv4_;
  uint32_t prefix_length_;
  std::array<uint8_t, kMaxPrefixLength> prefix_;
};

// Finds the IPv4 identification that a packet was sent with.
class IdentificationSolver final {
 public:
  // `computed` is the ICRC for identification `assumed`, `received` the packet's own. Returns the
  // identification that makes them equal. There is none for a corrupt packet (a random error slips
  // through once in 65,536, so try a likely identification first), nor for a `datagram_length`
  // beyond the longest packet.
  std::optional<uint16_t> Solve(uint16_t assumed, uint32_t computed, uint32_t received, uint32_t datagram_length);

 private:
  static constexpr uint32_t kBits = 16;

  // The change of the CRC by each identification bit, in echelon form: of columns i and later, only
  // column i has bit pivot[i].
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

// The IP header of a packet, for capture files, and for the 40 bytes before a received datagram.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kMaxIpHeader = 40;  // IPv6; IPv4: 20
constexpr uint32_t kUdpHeaderLength = 8;

// The Internet checksum (RFC 1071), computed piece by piece.
class InternetChecksum final {
 public:
  void Add(absl::Span<const uint8_t> bytes);
  void Add16(uint32_t value) { sum_ += value; }
  uint16_t Get() const;

 private:
  uint64_t sum_ = 0;
  bool odd_ = false;
};

struct IpHeaderFields {
  Address source;
  Address destination;
  uint8_t traffic_class = 0;
  uint16_t identification = 0;  // IPv4
  uint32_t udp_length = 0;      // bytes, with the UDP header
};

// Writes the header of a UDP packet that may not be fragmented, with checksum and a time to live of
// 64, to `out`, which has room for kMaxIpHeader bytes; returns its length.
uint32_t WriteIpHeader(const IpHeaderFields& fields, uint8_t* out);

}  // namespace tokamak::verbs::soft

// The IPv4 and UDP headers of a packet, which soft:raw writes and reads itself.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/types/span.h"
#include "lib/base/bytes.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kIpv4Header = 20;  // no options
constexpr uint32_t kUdpHeader = 8;
constexpr uint32_t kIpv4AndUdpHeader = kIpv4Header + kUdpHeader;
constexpr uint8_t kIpv4VersionAndLength = 0x45;
constexpr uint8_t kIpv4Udp = 17;
constexpr uint8_t kIpv4DontFragment = 0x40;
constexpr uint8_t kIpv4TimeToLive = 64;

// Writes kIpv4AndUdpHeader bytes in front of `datagram_length` more. DF is set. The kernel fills in
// IP's checksum; UDP's is 0, none: the ICRC is better.
inline void WriteIpv4AndUdp(const Address& source, const Address& destination, uint16_t identification,
                            uint32_t datagram_length, uint8_t* out, uint8_t traffic_class = 0) {
  std::memset(out, 0, kIpv4AndUdpHeader);
  out[0] = kIpv4VersionAndLength;
  base::StoreBig16(out + 2, static_cast<uint16_t>(kIpv4AndUdpHeader + datagram_length));
  base::StoreBig16(out + 4, identification);
  out[1] = traffic_class;
  out[6] = kIpv4DontFragment;
  out[8] = kIpv4TimeToLive;
  out[9] = kIpv4Udp;
  std::memcpy(out + 12, &source.ip[12], 4);
  std::memcpy(out + 16, &destination.ip[12], 4);
  uint8_t* const udp = out + kIpv4Header;
  base::StoreBig16(udp, source.port);
  base::StoreBig16(udp + 2, destination.port);
  base::StoreBig16(udp + 4, static_cast<uint16_t>(kUdpHeader + datagram_length));
}

struct Ipv4AndUdp {
  Address source;
  Address destination;
  uint16_t identification = 0;
  uint8_t traffic_class = 0;
  bool dont_fragment = false;
};

// Returns nothing unless `packet` is UDP over IPv4 without options. The lengths in it are not
// checked.
inline std::optional<Ipv4AndUdp> ReadIpv4AndUdp(absl::Span<const uint8_t> packet) {
  if (packet.size() < kIpv4AndUdpHeader || packet[0] != kIpv4VersionAndLength || packet[9] != kIpv4Udp)
    return std::nullopt;
  Ipv4AndUdp header;
  header.identification = base::LoadBig16(&packet[4]);
  header.traffic_class = packet[1];
  header.dont_fragment = (packet[6] & kIpv4DontFragment) != 0;
  const auto set_ip = [&](Address& address, uint32_t offset) {
    address.ip[10] = address.ip[11] = 0xff;
    std::memcpy(&address.ip[12], &packet[offset], 4);
  };
  set_ip(header.source, 12);
  set_ip(header.destination, 16);
  header.source.port = base::LoadBig16(&packet[kIpv4Header]);
  header.destination.port = base::LoadBig16(&packet[kIpv4Header + 2]);
  return header;
}

}  // namespace tokamak::verbs::soft

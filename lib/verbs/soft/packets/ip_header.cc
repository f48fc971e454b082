#include "lib/verbs/soft/packets/ip_header.h"

#include <cstring>

#include "lib/base/bytes.h"

namespace tokamak::verbs::soft {
namespace {

constexpr uint32_t kIpv4Header = 20;
constexpr uint8_t kTimeToLive = 64;
constexpr uint8_t kUdp = 17;
constexpr uint16_t kDontFragment = 0x4000;

}  // namespace

void InternetChecksum::Add(absl::Span<const uint8_t> bytes) {
  for (uint8_t byte : bytes) {
    sum_ += odd_ ? byte : uint32_t{byte} << 8;
    odd_ = !odd_;
  }
}

uint16_t InternetChecksum::Get() const {
  uint64_t sum = sum_;
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

uint32_t WriteIpHeader(const IpHeaderFields& fields, uint8_t* ip) {
  if (fields.destination.is_ipv4()) {
    std::memset(ip, 0, kIpv4Header);
    ip[0] = 0x45;
    ip[1] = fields.traffic_class;
    base::StoreBig16(ip + 2, static_cast<uint16_t>(kIpv4Header + fields.udp_length));
    base::StoreBig16(ip + 4, fields.identification);
    base::StoreBig16(ip + 6, kDontFragment);
    ip[8] = kTimeToLive;
    ip[9] = kUdp;
    std::memcpy(ip + 12, &fields.source.ip[12], 4);
    std::memcpy(ip + 16, &fields.destination.ip[12], 4);
    InternetChecksum checksum;
    checksum.Add({ip, kIpv4Header});
    base::StoreBig16(ip + 10, checksum.Get());
    return kIpv4Header;
  }
  base::StoreBig32(ip, 0x60000000 | uint32_t{fields.traffic_class} << 20);
  base::StoreBig16(ip + 4, static_cast<uint16_t>(fields.udp_length));
  ip[6] = kUdp;
  ip[7] = kTimeToLive;
  std::memcpy(ip + 8, fields.source.ip.data(), 16);
  std::memcpy(ip + 24, fields.destination.ip.data(), 16);
  return kMaxIpHeader;
}

}  // namespace tokamak::verbs::soft

// Ethernet frames, as a host's kernel would make them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/base/bytes.h"
#include "sim/emulation/frame_edits.h"
#include "sim/emulation/frame_head.h"

namespace tokamak::sim {

constexpr uint8_t kProtocolTcp = 6;
constexpr uint8_t kProtocolUdp = 17;

// From 10.0.0.1 to 10.0.0.2, with a right check sum of the header.
inline std::vector<uint8_t> Ipv4Frame(uint8_t protocol, uint16_t destination_port, size_t payload,
                                      uint8_t traffic_class = 0) {
  const size_t header = protocol == kProtocolUdp ? 8 : 20;
  std::vector<uint8_t> frame(kEthernetHeader + 20 + header + payload, 0x5a);
  base::StoreBig16(&frame[12], kEthernetIpv4);
  uint8_t* const ip = &frame[kEthernetHeader];
  std::memset(ip, 0, 20);
  ip[0] = 0x45;
  ip[1] = traffic_class;
  base::StoreBig16(ip + 2, static_cast<uint16_t>(frame.size() - kEthernetHeader));
  ip[8] = 64;
  ip[9] = protocol;
  base::StoreBig32(ip + 12, 0x0a000001);
  base::StoreBig32(ip + 16, 0x0a000002);
  base::StoreBig16(ip + 10, InternetChecksum({ip, 20}));
  base::StoreBig16(ip + 20, 49152);
  base::StoreBig16(ip + 22, destination_port);
  if (protocol == kProtocolUdp) base::StoreBig16(ip + 24, static_cast<uint16_t>(8 + payload));
  return frame;
}

// 10.0.0.1 asks for 10.0.0.2.
inline std::vector<uint8_t> ArpFrame() {
  std::vector<uint8_t> frame(kEthernetHeader + 28, 0);
  std::memset(frame.data(), 0xff, 6);
  base::StoreBig16(&frame[12], kEthernetArp);
  uint8_t* const arp = &frame[kEthernetHeader];
  base::StoreBig16(arp, 1);
  base::StoreBig16(arp + 2, kEthernetIpv4);
  arp[4] = 6;
  arp[5] = 4;
  arp[7] = 1;
  base::StoreBig32(arp + 14, 0x0a000001);
  base::StoreBig32(arp + 24, 0x0a000002);
  return frame;
}

}  // namespace tokamak::sim

// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_capture.h"

#include <algorithm>
#include <cstring>

#include "lib/base/bytes.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "ns3/abort.h"
#include "ns3/boolean.h"
#include "ns3/simulator.h"

namespace tokamak::sim {
namespace {

using verbs::soft::Packet;

constexpr uint32_t kLinkTypeEthernet = 1;
constexpr size_t kEthernetHeader = 14;
constexpr size_t kIpv6Header = 40;
constexpr size_t kUdpHeader = 8;
constexpr size_t kLeastFrame = 60;  // without check sum
constexpr uint16_t kIpv4Type = 0x0800;
constexpr uint16_t kIpv6Type = 0x86dd;
constexpr uint16_t kMacControlType = 0x8808;
constexpr uint16_t kPriorityPause = 0x0101;
constexpr uint16_t kUnnamedSourcePort = 0xc000;  // the fabric's choice

uint16_t HeaderChecksum(const uint8_t* ip) {
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += uint32_t{ip[i]} << 8 | ip[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

size_t MakeIpHeader(const Packet& packet, const verbs::Address& from, const verbs::Address& to, size_t udp_length,
                    uint8_t* ip) {
  if (to.is_ipv4()) {
    std::memset(ip, 0, 20);
    ip[0] = 0x45;
    ip[1] = verbs::soft::TrafficClassOf(packet);
    base::StoreBig16(ip + 2, static_cast<uint16_t>(20 + udp_length));
    base::StoreBig16(ip + 6, 0x4000);  // don't fragment
    ip[8] = 64;                        // time to live
    ip[9] = 17;                        // UDP
    std::memcpy(ip + 12, &from.ip[12], 4);
    std::memcpy(ip + 16, &to.ip[12], 4);
    base::StoreBig16(ip + 10, HeaderChecksum(ip));
    return 20;
  }
  base::StoreBig32(ip, 0x60000000 | uint32_t{verbs::soft::TrafficClassOf(packet)} << 20);
  base::StoreBig16(ip + 4, static_cast<uint16_t>(udp_length));
  ip[6] = 17;  // UDP
  ip[7] = 64;  // hop limit
  std::memcpy(ip + 8, from.ip.data(), 16);
  std::memcpy(ip + 24, to.ip.data(), 16);
  return kIpv6Header;
}

}  // namespace

RoceCapture::RoceCapture(const std::string& path)
    : file_(ns3::CreateObject<ns3::PcapFileWrapper>()),
      bytes_(kEthernetHeader + kIpv6Header + kUdpHeader + verbs::soft::kMaxDatagram) {
  file_->SetAttribute("NanosecMode", ns3::BooleanValue(true));
  file_->Open(path, std::ios::out);
  NS_ABORT_MSG_IF(file_->Fail(), "cannot write the capture file " << path);
  file_->Init(kLinkTypeEthernet);
}

uint8_t* RoceCapture::StartFrame(const ns3::Mac48Address& to, const ns3::Mac48Address& from, uint16_t type) {
  to.CopyTo(&bytes_[0]);
  from.CopyTo(&bytes_[6]);
  base::StoreBig16(&bytes_[12], type);
  return &bytes_[kEthernetHeader];
}

void RoceCapture::WriteFrame(size_t length) {
  if (length < kLeastFrame) std::memset(&bytes_[length], 0, kLeastFrame - length);
  file_->Write(ns3::Simulator::Now(), bytes_.data(), static_cast<uint32_t>(std::max(length, kLeastFrame)));
}

void RoceCapture::Write(const Packet& packet, const End& from, const End& to) {
  verbs::Address source = from.address;
  source.port = packet.source_port != 0 ? packet.source_port : kUnnamedSourcePort;
  const verbs::Address destination = verbs::soft::WithRocePort(to.address);
  uint8_t* ip = StartFrame(to.mac, from.mac, destination.is_ipv4() ? kIpv4Type : kIpv6Type);
  const size_t udp_length = kUdpHeader + verbs::soft::DatagramLength(packet);
  uint8_t* udp = ip + MakeIpHeader(packet, source, destination, udp_length, ip);
  base::StoreBig16(udp, source.port);
  base::StoreBig16(udp + 2, destination.port);
  base::StoreBig16(udp + 4, static_cast<uint16_t>(udp_length));
  base::StoreBig16(udp + 6, 0);  // no check sum: there is the ICRC
  verbs::soft::EncodeDatagram(packet, verbs::soft::IcrcFlow(source, destination), 0, udp + kUdpHeader);
  WriteFrame(static_cast<size_t>(udp - bytes_.data()) + udp_length);
}

void RoceCapture::WritePause(const PauseFrame& pause, const ns3::Mac48Address& from) {
  uint8_t* control = StartFrame(ns3::Mac48Address("01:80:c2:00:00:01"), from, kMacControlType);
  base::StoreBig16(control, kPriorityPause);
  base::StoreBig16(control + 2, pause.enabled);
  for (size_t i = 0; i < kPriorities; ++i) base::StoreBig16(control + 4 + 2 * i, pause.quanta[i]);
  WriteFrame(kEthernetHeader + 4 + 2 * size_t{kPriorities});
}

}  // namespace tokamak::sim

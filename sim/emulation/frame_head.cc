#include "sim/emulation/frame_head.h"

#include <netinet/in.h>

#include <cstring>

#include "lib/base/bytes.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::sim {
namespace {

constexpr uint32_t kLeastIpv4 = 20;
constexpr uint32_t kUdpHeader = 8;
constexpr uint32_t kArpLength = 28;        // IPv4 over Ethernet
constexpr uint32_t kArpTarget = 24;        // offset of the address asked for, or answered to
constexpr uint64_t kArpKind = 0x00010800;  // hardware Ethernet, protocol IPv4
constexpr uint8_t kFirstMulticast = 224;

verbs::Address AddressAt(const uint8_t* ip) {
  verbs::Address address;
  address.ip[10] = address.ip[11] = 0xff;
  std::memcpy(&address.ip[12], ip, 4);
  return address;
}

FrameKind ReadArp(absl::Span<const uint8_t> arp, OutsideFrame* frame) {
  if (arp.size() < kArpLength) return FrameKind::kMalformed;
  if (base::LoadBig32(&arp[0]) != kArpKind) return FrameKind::kOther;
  frame->destination = AddressAt(&arp[kArpTarget]);
  return FrameKind::kArp;
}

// Ignores ports of fragments, which only the first has: all take one way.
FrameKind ReadIpv4(absl::Span<const uint8_t> ip, OutsideFrame* frame) {
  if (ip.size() < kLeastIpv4) return FrameKind::kMalformed;
  const uint32_t header = (ip[0] & 0xfu) * 4;
  const uint32_t length = base::LoadBig16(&ip[2]);
  if (ip[0] >> 4 != 4 || header < kLeastIpv4 || length < header || length > ip.size()) return FrameKind::kMalformed;
  if (ip[16] >= kFirstMulticast) return FrameKind::kOther;
  frame->destination = AddressAt(&ip[16]);
  frame->dscp = ip[1] >> 2;
  frame->ecn = static_cast<verbs::soft::Ecn>(ip[1] & 3);
  const uint8_t protocol = ip[9];
  frame->flow = uint64_t{protocol} << 32;
  const bool fragment = (base::LoadBig16(&ip[6]) & 0x3fff) != 0;
  if (fragment || (protocol != IPPROTO_UDP && protocol != IPPROTO_TCP) || length < header + 4) return FrameKind::kIpv4;
  frame->flow |= base::LoadBig32(&ip[header]);
  const uint16_t port = base::LoadBig16(&ip[header + 2]);
  const bool roce = protocol == IPPROTO_UDP && length >= header + kUdpHeader + verbs::soft::kMinDatagram &&
                    (port == verbs::soft::kRoceUdpPort || port == verbs::soft::kBulkUdpPort);
  return roce ? FrameKind::kRoce : FrameKind::kIpv4;
}

}  // namespace

FrameHead ReadFrameHead(absl::Span<const uint8_t> bytes) {
  FrameHead head;
  head.frame.bytes = bytes;
  if (bytes.size() < kEthernetHeader) {
    head.kind = FrameKind::kMalformed;
    return head;
  }
  const absl::Span<const uint8_t> inner = bytes.subspan(kEthernetHeader);
  switch (base::LoadBig16(&bytes[12])) {
    case kEthernetArp:
      head.kind = ReadArp(inner, &head.frame);
      break;
    case kEthernetIpv4:
      head.kind = ReadIpv4(inner, &head.frame);
      break;
    default:
      break;
  }
  return head;
}

const char* ToString(FrameKind kind) {
  switch (kind) {
    case FrameKind::kRoce:
      return "RoCE";
    case FrameKind::kIpv4:
      return "IPv4";
    case FrameKind::kArp:
      return "ARP";
    case FrameKind::kOther:
      return "other";
    case FrameKind::kMalformed:
      return "malformed";
  }
  return "?";
}

}  // namespace tokamak::sim

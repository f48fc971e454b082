// FrameHead is what the fabric reads of an Ethernet frame of a host outside: its destination,
// priority and flow, and whether it may be marked.
//
// The fabric takes frames to hosts by IPv4 address, as if all switches knew where each address is.
// So frames keep the hardware addresses of the two hosts; and an ARP request, which Ethernet would
// carry to everybody, goes to the one host that it asks for.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "sim/fabric/outside_port.h"

namespace tokamak::sim {

constexpr uint32_t kEthernetHeader = 14;
constexpr uint16_t kEthernetIpv4 = 0x0800;
constexpr uint16_t kEthernetArp = 0x0806;

enum class FrameKind : uint8_t {
  kRoce,       // UDP to port 4791, or to 4792, of tokd's bulk
  kIpv4,       // any other IPv4
  kArp,        // a request or a reply
  kOther,      // IPv6, VLAN tags, IPv4 multicast and so on: not carried by the fabric
  kMalformed,  // shorter than its headers say
};
constexpr int kFrameKinds = 5;
const char* ToString(FrameKind kind);

struct FrameHead {
  FrameKind kind = FrameKind::kOther;
  OutsideFrame frame;  // its bytes are those that were read; the rest is set for the first three kinds only
};

// Reads nothing outside of `bytes`.
FrameHead ReadFrameHead(absl::Span<const uint8_t> bytes);

}  // namespace tokamak::sim

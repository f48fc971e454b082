// FrameHead is what the fabric reads of an outside host's Ethernet frame: destination, priority,
// flow, and whether it may be marked.
//
// The fabric forwards by IPv4 address: frames keep both hosts' hardware addresses, and an ARP
// request goes to the one host asked for.
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
  kRoce,  // UDP to port 4791, or to 4792, of tokd's bulk
  kIpv4,
  kArp,
  kOther,      // IPv6, VLAN tags, IPv4 multicast and so on: not carried
  kMalformed,  // shorter than its headers say
};
constexpr int kFrameKinds = 5;
const char* ToString(FrameKind kind);

struct FrameHead {
  FrameKind kind = FrameKind::kOther;
  OutsideFrame frame;  // `bytes` as read; the rest for the first three kinds only
};

FrameHead ReadFrameHead(absl::Span<const uint8_t> bytes);

}  // namespace tokamak::sim

// Packet is one RoCEv2 packet, decoded: its headers, and where its payload lies.
//
// wire.h turns it into bytes.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet_opcode.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// The IP header's ECN field (RFC 3168).
enum class Ecn : uint8_t { kNotCapable = 0, kCapable1 = 1, kCapable0 = 2, kMarked = 3 };

constexpr uint32_t kHeldPackets = 128;  // packets in the map of a selective NAK
constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint32_t kMaxPayloadSlices = 8;
constexpr uint64_t kMaxMessage = uint64_t{1} << 31;  // bytes; spans at most half of the PSNs (9.7.2)
constexpr uint32_t kManagementQueuePair = 1;         // QP 1 carries CM MADs
constexpr uint32_t kManagementQkey = 0x80010000;     // (3.5.3)
constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint16_t kRoceUdpPort = 4791;
// A dialect of our own: the port of a node's second software NIC, for bulk.
constexpr uint16_t kBulkUdpPort = kRoceUdpPort + 1;
constexpr uint8_t kNotificationDscp = 48;  // of congestion notifications: a class of their own

struct PayloadSlice {
  const uint8_t* data = nullptr;  // null: bytes of a phantom region (kPhantom)
  uint32_t length = 0;
};

// All of a packet except its payload.
struct PacketHeaders {
  // BTH (9.2)
  PacketOpcode opcode = PacketOpcode::kAcknowledge;
  bool solicited = false;
  bool ack_request = false;
  bool corrupt = false;  // a simulated ICRC failure: the receiver counts and drops it
  uint16_t pkey = kDefaultPkey;
  uint32_t destination = 0;  // queue pair number, 24 bits
  uint32_t psn = 0;          // 24 bits
  // RETH and AtomicETH
  uint64_t remote_address = 0;
  uint32_t rkey = 0;         // also IETH: the key to invalidate
  uint32_t dma_length = 0;   // RETH: bytes of the whole message
  uint64_t swap_or_add = 0;  // also of a selective NAK: which of 64 packets after the missing one are here,
  uint64_t compare = 0;      // and of the next 64; the first in the lowest bit
  // AETH and AtomicAckETH
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits
  uint64_t original = 0;
  // ImmDt
  uint32_t immediate = 0;  // host order
  // DETH
  uint32_t qkey = 0;
  uint32_t source_queue_pair = 0;
  // IP header. A fabric that knows neither leaves them as they are.
  Ecn ecn = Ecn::kNotCapable;
  uint8_t dscp = 0;  // 6 bits

  // Source (received) or destination (sent), as fabrics write it: `port` is the UDP port. Port 0 of
  // a destination is the sender's own.
  Address peer;
  // Received: the IP address of the packet's multicast group; zeros if it came to the port's own.
  std::array<uint8_t, 16> group{};
  bool came_to_group() const { return group != std::array<uint8_t, 16>{}; }
  // udp: the flow's source port, chosen by the queue pair for ECMP; 0: the fabric chooses
  uint16_t source_port = 0;
};

inline constexpr PacketHeaders kFreshHeaders;

// Convert DSCP and ECN to one byte, IPv4's type of service or IPv6's traffic class, and back.
inline uint8_t TrafficClassOf(const PacketHeaders& packet) {
  return static_cast<uint8_t>(packet.dscp << 2 | static_cast<uint8_t>(packet.ecn));
}
inline void SetTrafficClass(uint8_t traffic_class, PacketHeaders* packet) {
  packet->dscp = traffic_class >> 2;
  packet->ecn = static_cast<Ecn>(traffic_class & 3);
}

// Convert a device's address to the form that fabrics use, and back.
inline Address ToFabricAddress(const Address& device) {
  Address address;
  address.ip = device.ip;
  address.port = device.udp_port;
  return address;
}
inline Address FromFabricAddress(const Address& address) {
  Address device;
  device.ip = address.ip;
  device.udp_port = address.port;
  return device;
}

struct Packet : PacketHeaders {
  // The payload, without padding. The fabric reads it during Send only, the receiver during the
  // callback only.
  uint32_t slices = 0;
  PayloadSlice payload[kMaxPayloadSlices];

  // Makes it as new, cheaply: copying constant headers is faster than making them, and slices
  // beyond `slices` are never read.
  void Reset() {
    static_cast<PacketHeaders&>(*this) = kFreshHeaders;
    slices = 0;
  }

  absl::Span<const PayloadSlice> pieces() const { return absl::MakeConstSpan(payload, slices); }

  uint32_t payload_length() const {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < slices; ++i) sum += payload[i].length;
    return sum;
  }
};

}  // namespace tokamak::verbs::soft

// Packet is one RoCEv2 packet, decoded: the headers that it has and where its payload lies.
//
// Between our own parts a packet travels like this; only fabrics with a wire (udp, pcap, the
// byte-exact test mode) turn it into bytes, see wire.h. docs/packets.md draws every header.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// BTH opcodes: RC and UD (9.2, table 38), RoCEv2's congestion notification (A17.9.3), and one of our
// own, from the range that is left to manufacturers.
enum class PacketOpcode : uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastWithImm = 0x03,
  kSendOnly = 0x04,
  kSendOnlyWithImm = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastWithImm = 0x09,
  kWriteOnly = 0x0a,
  kWriteOnlyWithImm = 0x0b,
  kReadRequest = 0x0c,
  kReadResponseFirst = 0x0d,
  kReadResponseMiddle = 0x0e,
  kReadResponseLast = 0x0f,
  kReadResponseOnly = 0x10,
  kAcknowledge = 0x11,
  kAtomicAcknowledge = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kSendLastWithInvalidate = 0x16,
  kSendOnlyWithInvalidate = 0x17,
  kDatagramSendOnly = 0x64,
  kDatagramSendOnlyWithImm = 0x65,
  kCongestionNotification = 0x81,
  kSelectiveNak = 0xc1,
};

// Of the IP header: whether the sender reacts to marks, and whether the network has set one. (RFC
// 3168)
enum class Ecn : uint8_t { kNotCapable = 0, kCapable1 = 1, kCapable0 = 2, kMarked = 3 };

constexpr uint32_t kHeldPackets = 128;  // that a selective NAK tells of
constexpr uint32_t kPsnMask = 0xffffff;
constexpr uint32_t kMaxPayloadSlices = 8;
constexpr uint64_t kMaxMessage = uint64_t{1} << 31;  // bytes; so no message spans more than half of the PSNs (9.7.2)
constexpr uint32_t kManagementQueuePair = 1;         // QP 1 carries CM MADs
constexpr uint32_t kManagementQkey = 0x80010000;     // (3.5.3)
constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint16_t kRoceUdpPort = 4791;
// A private dialect: where a node's second software NIC is, which moves its bulk.
constexpr uint16_t kBulkUdpPort = kRoceUdpPort + 1;
constexpr uint8_t kNotificationDscp = 48;  // of congestion notifications: a class of their own

struct PayloadSlice {
  const uint8_t* data = nullptr;  // null: bytes of a phantom region, which are nowhere (verbs::kPhantom)
  uint32_t length = 0;
};

// All of a packet but its payload.
struct PacketHeaders {
  // BTH (9.2)
  PacketOpcode opcode = PacketOpcode::kAcknowledge;
  bool solicited = false;
  bool ack_request = false;
  bool corrupt = false;  // a simulated ICRC failure: the receiver counts and drops it
  uint16_t pkey = kDefaultPkey;
  uint32_t destination = 0;  // queue pair number, 24 bits
  uint32_t psn = 0;          // 24 bits
  // RETH and AtomicETH: writes, reads, atomics
  uint64_t remote_address = 0;
  uint32_t rkey = 0;         // also IETH: the key to invalidate
  uint32_t dma_length = 0;   // RETH, bytes of the whole message
  uint64_t swap_or_add = 0;  // also of a selective NAK: which of 64 packets after the missing one are here,
  uint64_t compare = 0;      // and of the 64 after these; the next one in the lowest bit
  // AETH and AtomicAckETH: acknowledgements and some read responses
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits
  uint64_t original = 0;
  // ImmDt
  uint32_t immediate = 0;  // host order
  // DETH: datagrams
  uint32_t qkey = 0;
  uint32_t source_queue_pair = 0;
  // IP. A fabric that knows neither leaves them as they are.
  Ecn ecn = Ecn::kNotCapable;
  uint8_t dscp = 0;  // 6 bits

  // Where it came from (received) or goes to (sent), as fabrics write it: `port` is the UDP port
  // where that applies. What is sent to port 0 goes to the port that the sender has itself.
  Address peer;
  // Received: the IP address of the multicast group that it was sent to; zeros where it was sent to
  // the port's own.
  std::array<uint8_t, 16> group{};
  bool came_to_group() const { return group != std::array<uint8_t, 16>{}; }
  // udp: the flow's source port, chosen by the queue pair (for ECMP); 0 lets the fabric choose
  uint16_t source_port = 0;
};

inline constexpr PacketHeaders kFreshHeaders;

// DSCP and ECN in one byte, as in IPv4's type of service and IPv6's traffic class, and back.
inline uint8_t TrafficClassOf(const PacketHeaders& packet) {
  return static_cast<uint8_t>(packet.dscp << 2 | static_cast<uint8_t>(packet.ecn));
}
inline void SetTrafficClass(uint8_t traffic_class, PacketHeaders* packet) {
  packet->dscp = traffic_class >> 2;
  packet->ecn = static_cast<Ecn>(traffic_class & 3);
}

// A device's address as fabrics write it, and back.
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
  // The payload, without padding. Looked at by the fabric during Send only (it copies, or hands it
  // to the kernel, before it returns), and by the receiver during the callback only.
  uint32_t slices = 0;
  PayloadSlice payload[kMaxPayloadSlices];

  // As new, at little cost, since this is done for each packet: slices, which nobody looks at
  // beyond the first `slices`, are left as they are, and the headers are copied from constants,
  // which is faster than making them.
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

// Which of the extended headers an opcode has. False for all when the opcode is unknown.
bool IsKnown(PacketOpcode opcode);
bool HasReth(PacketOpcode opcode);
bool HasAeth(PacketOpcode opcode);
bool HasImmediate(PacketOpcode opcode);
bool HasAtomicEth(PacketOpcode opcode);
bool HasAtomicAckEth(PacketOpcode opcode);
bool HasIeth(PacketOpcode opcode);
bool HasDeth(PacketOpcode opcode);

// The bytes of all headers between UDP and the payload (BTH included).
uint32_t HeaderLength(PacketOpcode opcode);

}  // namespace tokamak::verbs::soft

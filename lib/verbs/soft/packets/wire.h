// Conversion between a Packet and the bytes of a UDP datagram: BTH | extended headers | payload |
// pad | ICRC.
//
// Nothing is allocated and no payload copied: decoding points into the datagram. icrc.h computes
// the ICRC. Numbers are big-endian, except the ICRC. docs/packets.md draws every header.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kBthLength = 12;
constexpr uint32_t kMaxHeaderLength = 40;  // BTH and AtomicETH
constexpr uint32_t kMaxPad = 3;
constexpr uint32_t kIcrcLength = 4;
constexpr uint32_t kMaxTrailerLength = kMaxPad + kIcrcLength;
constexpr uint32_t kMinDatagram = kBthLength + kIcrcLength;
constexpr uint32_t kMaxDatagram = kMaxHeaderLength + kMaxMtu + kIcrcLength;

// The byte of FECN, BECN and reserved bits, which may change on the way. A congestion notification
// has BECN set.
constexpr uint32_t kBthMaskedByte = 4;

// Returns how many zero bytes round the payload up to whole words.
constexpr uint32_t PadLength(uint32_t payload_length) { return -payload_length & 3; }

// Returns the packet's bytes after the UDP header.
uint32_t DatagramLength(const Packet& packet);

// Returns the packet's bytes on an Ethernet link, from preamble to gap.
uint32_t EthernetBytes(const Packet& packet);

// Writes BTH and extended headers to `header`, which has room for kMaxHeaderLength bytes; returns
// how many bytes it wrote. The opcode must be known, and numbers must fit their fields.
uint32_t EncodeHeader(const Packet& packet, uint8_t* header);

enum class DecodeResult : uint8_t {
  kOk,
  kTooShort,          // no room for a BTH and an ICRC
  kTransportVersion,  // a version of InfiniBand's transport other than 0
  kUnknownOpcode,
  kTruncatedHeader,    // the opcode's headers do not fit
  kUnalignedLength,    // not whole words
  kBadPadCount,        // more pad than payload
  kUnexpectedPayload,  // behind an acknowledgement, READ request or atomic
  kPayloadTooLong,     // more than the largest MTU
};
constexpr uint32_t kDecodeResults = 9;
const char* ToString(DecodeResult result);

// Reads a datagram that ends with an ICRC, which is not checked. With kOk all of `*packet` is set
// except `peer`, `source_port`, `ecn` and `dscp`, and its payload points into `datagram`; otherwise
// `*packet` is undefined. Reads no byte outside `datagram`.
[[nodiscard]] DecodeResult Decode(absl::Span<const uint8_t> datagram, Packet* packet);

// `datagram` has at least kMinDatagram bytes.
uint32_t ReceivedIcrc(absl::Span<const uint8_t> datagram);

}  // namespace tokamak::verbs::soft

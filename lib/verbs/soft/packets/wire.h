// Conversion between a Packet and the bytes of a UDP datagram: BTH | extended headers | payload |
// pad | ICRC.
//
// Encoding makes the headers and the trailer; decoding points into the datagram. Neither allocates
// or copies payload. The ICRC, which covers addresses as well, is computed beside it (icrc.h).
// Numbers are big-endian, except the ICRC. docs/packets.md draws every header.
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

// BTH byte 4 (FECN, BECN, reserved) may change on the way. A congestion notification has BECN set.
constexpr uint32_t kBthMaskedByte = 4;

// Zero bytes that round the payload up to whole words.
constexpr uint32_t PadLength(uint32_t payload_length) { return -payload_length & 3; }

// Returns the packet's bytes after the UDP header.
uint32_t DatagramLength(const Packet& packet);

// Returns the packet's bytes on an Ethernet link, with preamble, gap, Ethernet, IP and UDP headers.
uint32_t EthernetBytes(const Packet& packet);

// Writes BTH and extended headers to `header`, which has room for kMaxHeaderLength bytes; returns
// how many. The opcode must be known; numbers must fit their fields.
uint32_t EncodeHeader(const Packet& packet, uint8_t* header);

// The fault of a datagram that is no packet.
enum class DecodeResult : uint8_t {
  kOk,
  kTooShort,          // no room for a BTH and an ICRC
  kTransportVersion,  // a version of InfiniBand's transport other than 0
  kUnknownOpcode,
  kTruncatedHeader,    // the opcode's headers do not fit
  kUnalignedLength,    // not whole words: the sender did not pad
  kBadPadCount,        // more pad than payload
  kUnexpectedPayload,  // behind a header that stands alone (acknowledgement, READ request, atomic)
  kPayloadTooLong,     // more than the largest MTU
};
constexpr uint32_t kDecodeResults = 9;
const char* ToString(DecodeResult result);

// Reads a datagram, ICRC included but not checked. With kOk all of `*packet` is set except `peer`,
// `source_port`, `ecn` and `dscp`, and its payload points into `datagram`; otherwise `*packet` is
// undefined. Reads no byte outside `datagram`.
[[nodiscard]] DecodeResult Decode(absl::Span<const uint8_t> datagram, Packet* packet);

// Returns the ICRC at the end of a datagram of at least kMinDatagram bytes.
uint32_t ReceivedIcrc(absl::Span<const uint8_t> datagram);

}  // namespace tokamak::verbs::soft

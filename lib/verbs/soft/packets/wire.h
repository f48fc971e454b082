// Conversion between a Packet and the bytes of a UDP datagram: BTH | extended headers | payload |
// pad | ICRC.
//
// No allocation, no copy of payload: decoding points into the datagram. icrc.h computes the ICRC.
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

// FECN, BECN, reserved: may change on the way. A congestion notification has BECN.
constexpr uint32_t kBthMaskedByte = 4;

// Returns the zero bytes that round the payload up to words.
constexpr uint32_t PadLength(uint32_t payload_length) { return -payload_length & 3; }

// Returns the bytes after the UDP header.
uint32_t DatagramLength(const Packet& packet);

// Returns the bytes on Ethernet, preamble to gap.
uint32_t EthernetBytes(const Packet& packet);

// Writes BTH and extended headers to `header`, of kMaxHeaderLength bytes; returns how many. The
// opcode must be known, numbers fit their fields.
uint32_t EncodeHeader(const Packet& packet, uint8_t* header);

enum class DecodeResult : uint8_t {
  kOk,
  kTooShort,          // for BTH and ICRC
  kTransportVersion,  // not 0
  kUnknownOpcode,
  kTruncatedHeader,    // for the opcode's headers
  kUnalignedLength,    // not whole words
  kBadPadCount,        // more pad than payload
  kUnexpectedPayload,  // behind an acknowledgement, READ request or atomic
  kPayloadTooLong,     // more than the largest MTU
};
constexpr uint32_t kDecodeResults = 9;
const char* ToString(DecodeResult result);

// Reads a datagram with an unchecked ICRC. kOk: all of `*packet` is set but `peer`, `source_port`,
// `ecn` and `dscp`, and its payload points into `datagram`; else it is undefined. Reads no byte
// outside.
[[nodiscard]] DecodeResult Decode(absl::Span<const uint8_t> datagram, Packet* packet);

// `datagram`: at least kMinDatagram bytes.
uint32_t ReceivedIcrc(absl::Span<const uint8_t> datagram);

}  // namespace tokamak::verbs::soft

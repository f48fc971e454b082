// PacketOpcode says what a packet is; its traits, a row for each opcode, say which headers follow
// the BTH, which part of a message the packet is, and which side of a connection it is for.
#pragma once

#include <cstdint>

namespace tokamak::verbs::soft {

// BTH opcodes: RC and UD (9.2, table 38), congestion notification (A17.9.3), and one of our own
// from the manufacturers' range.
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

// Extended headers, in the order in which they follow the BTH (9.2, table 38).
enum PacketHeader : uint16_t {
  kDeth = 1,
  kReth = 2,
  kAtomicEth = 4,
  kAeth = 8,
  kAtomicAckEth = 16,
  kImmDt = 32,
  kIeth = 64,
  kReserved16 = 128,  // 16 bytes of a congestion notification
  kHeldMap = 256,     // 16 bytes of a selective NAK
};

enum class PacketKind : uint8_t {
  kUnknown,
  kSend,
  kWrite,
  kReadRequest,
  kAtomicRequest,
  kReadResponse,
  kAcknowledge,  // also of an atomic, and a selective NAK
  kDatagram,
  kNotification,  // of congestion
};

// Part of a message, as bits: an only packet both begins and ends it.
enum PacketPlace : uint8_t { kMiddle = 0, kBegins = 1, kEnds = 2, kOnly = kBegins | kEnds };

struct OpcodeTraits {
  PacketKind kind = PacketKind::kUnknown;
  PacketPlace place = kOnly;
  uint16_t headers = 0;       // PacketHeader bits
  uint8_t header_length = 0;  // bytes between UDP and the payload, BTH included; 0: unknown
};

namespace opcode_traits {

constexpr uint8_t LengthOf(uint16_t headers) {
  uint8_t length = 12;  // BTH
  if (headers & kDeth) length += 8;
  if (headers & kReth) length += 16;
  if (headers & kAtomicEth) length += 28;
  if (headers & kAeth) length += 4;
  if (headers & kAtomicAckEth) length += 8;
  if (headers & kImmDt) length += 4;
  if (headers & kIeth) length += 4;
  if (headers & kReserved16) length += 16;
  if (headers & kHeldMap) length += 16;
  return length;
}

struct Row {
  PacketOpcode opcode;
  PacketKind kind;
  PacketPlace place;
  int headers;
};

inline constexpr Row kRows[] = {
    {PacketOpcode::kSendFirst, PacketKind::kSend, kBegins, 0},
    {PacketOpcode::kSendMiddle, PacketKind::kSend, kMiddle, 0},
    {PacketOpcode::kSendLast, PacketKind::kSend, kEnds, 0},
    {PacketOpcode::kSendLastWithImm, PacketKind::kSend, kEnds, kImmDt},
    {PacketOpcode::kSendOnly, PacketKind::kSend, kOnly, 0},
    {PacketOpcode::kSendOnlyWithImm, PacketKind::kSend, kOnly, kImmDt},
    {PacketOpcode::kWriteFirst, PacketKind::kWrite, kBegins, kReth},
    {PacketOpcode::kWriteMiddle, PacketKind::kWrite, kMiddle, 0},
    {PacketOpcode::kWriteLast, PacketKind::kWrite, kEnds, 0},
    {PacketOpcode::kWriteLastWithImm, PacketKind::kWrite, kEnds, kImmDt},
    {PacketOpcode::kWriteOnly, PacketKind::kWrite, kOnly, kReth},
    {PacketOpcode::kWriteOnlyWithImm, PacketKind::kWrite, kOnly, kReth | kImmDt},
    {PacketOpcode::kReadRequest, PacketKind::kReadRequest, kOnly, kReth},
    {PacketOpcode::kReadResponseFirst, PacketKind::kReadResponse, kBegins, kAeth},
    {PacketOpcode::kReadResponseMiddle, PacketKind::kReadResponse, kMiddle, 0},
    {PacketOpcode::kReadResponseLast, PacketKind::kReadResponse, kEnds, kAeth},
    {PacketOpcode::kReadResponseOnly, PacketKind::kReadResponse, kOnly, kAeth},
    {PacketOpcode::kAcknowledge, PacketKind::kAcknowledge, kOnly, kAeth},
    {PacketOpcode::kAtomicAcknowledge, PacketKind::kAcknowledge, kOnly, kAeth | kAtomicAckEth},
    {PacketOpcode::kCompareSwap, PacketKind::kAtomicRequest, kOnly, kAtomicEth},
    {PacketOpcode::kFetchAdd, PacketKind::kAtomicRequest, kOnly, kAtomicEth},
    {PacketOpcode::kSendLastWithInvalidate, PacketKind::kSend, kEnds, kIeth},
    {PacketOpcode::kSendOnlyWithInvalidate, PacketKind::kSend, kOnly, kIeth},
    {PacketOpcode::kDatagramSendOnly, PacketKind::kDatagram, kOnly, kDeth},
    {PacketOpcode::kDatagramSendOnlyWithImm, PacketKind::kDatagram, kOnly, kDeth | kImmDt},
    {PacketOpcode::kCongestionNotification, PacketKind::kNotification, kOnly, kReserved16},
    {PacketOpcode::kSelectiveNak, PacketKind::kAcknowledge, kOnly, kAeth | kHeldMap},
};

// By the byte on the wire, which may have any value.
struct Table {
  OpcodeTraits of[256];
};

constexpr Table MakeTable() {
  Table table{};
  for (const Row& row : kRows) {
    const auto headers = static_cast<uint16_t>(row.headers);
    table.of[static_cast<uint8_t>(row.opcode)] = {row.kind, row.place, headers, LengthOf(headers)};
  }
  return table;
}

inline constexpr Table kTable = MakeTable();

}  // namespace opcode_traits

constexpr const OpcodeTraits& TraitsOf(PacketOpcode opcode) {
  return opcode_traits::kTable.of[static_cast<uint8_t>(opcode)];
}

constexpr bool IsKnown(PacketOpcode opcode) { return TraitsOf(opcode).kind != PacketKind::kUnknown; }

// Returns false for unknown opcodes.
constexpr bool HasHeader(PacketOpcode opcode, PacketHeader header) { return (TraitsOf(opcode).headers & header) != 0; }
constexpr bool HasReth(PacketOpcode opcode) { return HasHeader(opcode, kReth); }
constexpr bool HasAeth(PacketOpcode opcode) { return HasHeader(opcode, kAeth); }
constexpr bool HasImmediate(PacketOpcode opcode) { return HasHeader(opcode, kImmDt); }
constexpr bool HasAtomicEth(PacketOpcode opcode) { return HasHeader(opcode, kAtomicEth); }
constexpr bool HasAtomicAckEth(PacketOpcode opcode) { return HasHeader(opcode, kAtomicAckEth); }
constexpr bool HasIeth(PacketOpcode opcode) { return HasHeader(opcode, kIeth); }
constexpr bool HasDeth(PacketOpcode opcode) { return HasHeader(opcode, kDeth); }

// Returns the bytes between UDP and the payload, BTH included; 0: unknown.
constexpr uint32_t HeaderLength(PacketOpcode opcode) { return TraitsOf(opcode).header_length; }

constexpr bool IsSend(PacketOpcode opcode) { return TraitsOf(opcode).kind == PacketKind::kSend; }
constexpr bool IsWrite(PacketOpcode opcode) { return TraitsOf(opcode).kind == PacketKind::kWrite; }
constexpr bool IsAtomic(PacketOpcode opcode) { return TraitsOf(opcode).kind == PacketKind::kAtomicRequest; }
constexpr bool IsReadResponse(PacketOpcode opcode) { return TraitsOf(opcode).kind == PacketKind::kReadResponse; }

// True for packets to the responder of a connection; its other packets go to the requester.
constexpr bool IsRequest(PacketOpcode opcode) {
  const PacketKind kind = TraitsOf(opcode).kind;
  return kind == PacketKind::kSend || kind == PacketKind::kWrite || kind == PacketKind::kReadRequest ||
         kind == PacketKind::kAtomicRequest;
}

// True if its sender can send it more slowly.
constexpr bool IsData(PacketOpcode opcode) {
  const PacketKind kind = TraitsOf(opcode).kind;
  return kind != PacketKind::kAcknowledge && kind != PacketKind::kNotification;
}

constexpr bool Begins(PacketOpcode opcode) { return (TraitsOf(opcode).place & kBegins) != 0; }
constexpr bool Ends(PacketOpcode opcode) { return (TraitsOf(opcode).place & kEnds) != 0; }
constexpr bool IsOnly(PacketOpcode opcode) { return TraitsOf(opcode).place == kOnly; }

static_assert(sizeof(opcode_traits::kRows) / sizeof(opcode_traits::kRows[0]) == 27, "a row for each PacketOpcode");
static_assert(IsSend(PacketOpcode::kSendOnlyWithInvalidate) && IsOnly(PacketOpcode::kSendOnlyWithInvalidate));
static_assert(!IsRequest(PacketOpcode::kSelectiveNak) && !IsKnown(static_cast<PacketOpcode>(0x15)));

}  // namespace tokamak::verbs::soft

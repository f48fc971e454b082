#include "lib/verbs/soft/packet.h"

namespace tokamak::verbs::soft {
namespace {

// Which headers follow the BTH, in the order in which they stand. (9.2, table 38)
enum Headers : uint16_t {
  kUnknown = 0,
  kBth = 1,
  kDeth = 2,
  kReth = 4,
  kAtomicEth = 8,
  kAeth = 16,
  kAtomicAckEth = 32,
  kImmDt = 64,
  kIeth = 128,
  kReserved16 = 256,  // of a congestion notification
  kHeldMap = 512,     // of a selective NAK, 16 bytes
};

constexpr uint16_t HeadersOf(PacketOpcode opcode) {
  switch (opcode) {
    case PacketOpcode::kSendFirst:
    case PacketOpcode::kSendMiddle:
    case PacketOpcode::kSendLast:
    case PacketOpcode::kSendOnly:
    case PacketOpcode::kWriteMiddle:
    case PacketOpcode::kWriteLast:
    case PacketOpcode::kReadResponseMiddle:
      return kBth;
    case PacketOpcode::kSendLastWithImm:
    case PacketOpcode::kSendOnlyWithImm:
    case PacketOpcode::kWriteLastWithImm:
      return kBth | kImmDt;
    case PacketOpcode::kWriteFirst:
    case PacketOpcode::kWriteOnly:
    case PacketOpcode::kReadRequest:
      return kBth | kReth;
    case PacketOpcode::kWriteOnlyWithImm:
      return kBth | kReth | kImmDt;
    case PacketOpcode::kReadResponseFirst:
    case PacketOpcode::kReadResponseLast:
    case PacketOpcode::kReadResponseOnly:
    case PacketOpcode::kAcknowledge:
      return kBth | kAeth;
    case PacketOpcode::kAtomicAcknowledge:
      return kBth | kAeth | kAtomicAckEth;
    case PacketOpcode::kCompareSwap:
    case PacketOpcode::kFetchAdd:
      return kBth | kAtomicEth;
    case PacketOpcode::kSendLastWithInvalidate:
    case PacketOpcode::kSendOnlyWithInvalidate:
      return kBth | kIeth;
    case PacketOpcode::kDatagramSendOnly:
      return kBth | kDeth;
    case PacketOpcode::kDatagramSendOnlyWithImm:
      return kBth | kDeth | kImmDt;
    case PacketOpcode::kCongestionNotification:
      return kBth | kReserved16;
    case PacketOpcode::kSelectiveNak:
      return kBth | kAeth | kHeldMap;
  }
  return kUnknown;  // a byte from the wire may be anything
}

constexpr uint8_t LengthOf(uint16_t headers) {
  uint8_t length = 0;
  if (headers & kBth) length += 12;
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

// Both by opcode: a look-up for each packet instead of a chain of branches.
struct Tables {
  uint16_t headers[256] = {};
  uint8_t length[256] = {};
};

constexpr Tables MakeTables() {
  Tables tables;
  for (int i = 0; i < 256; ++i) {
    tables.headers[i] = HeadersOf(static_cast<PacketOpcode>(i));
    tables.length[i] = LengthOf(tables.headers[i]);
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

bool Has(PacketOpcode opcode, Headers header) { return (kTables.headers[static_cast<uint8_t>(opcode)] & header) != 0; }

}  // namespace

bool IsKnown(PacketOpcode opcode) { return Has(opcode, kBth); }
bool HasReth(PacketOpcode opcode) { return Has(opcode, kReth); }
bool HasAeth(PacketOpcode opcode) { return Has(opcode, kAeth); }
bool HasImmediate(PacketOpcode opcode) { return Has(opcode, kImmDt); }
bool HasAtomicEth(PacketOpcode opcode) { return Has(opcode, kAtomicEth); }
bool HasAtomicAckEth(PacketOpcode opcode) { return Has(opcode, kAtomicAckEth); }
bool HasIeth(PacketOpcode opcode) { return Has(opcode, kIeth); }
bool HasDeth(PacketOpcode opcode) { return Has(opcode, kDeth); }

uint32_t HeaderLength(PacketOpcode opcode) { return kTables.length[static_cast<uint8_t>(opcode)]; }

}  // namespace tokamak::verbs::soft

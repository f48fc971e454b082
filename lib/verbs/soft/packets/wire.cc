#include "lib/verbs/soft/packets/wire.h"

#include <cstring>

#include "lib/base/bytes.h"

namespace tokamak::verbs::soft {
namespace {

// BTH byte 1: solicited event, migration state, pad count, transport version. (9.2)
constexpr uint8_t kSolicited = 0x80;
constexpr uint8_t kMigrated = 0x40;  // the queue pair never had an alternate path
constexpr uint8_t kVersionMask = 0x0f;
constexpr uint8_t kBecn = 0x40;         // byte 4
constexpr uint8_t kAckRequest = 0x80;   // byte 8
constexpr size_t kReservedLength = 16;  // behind the BTH of a congestion notification

bool MayCarryPayload(PacketOpcode opcode) {
  switch (opcode) {
    case PacketOpcode::kReadRequest:
    case PacketOpcode::kAcknowledge:
    case PacketOpcode::kAtomicAcknowledge:
    case PacketOpcode::kCompareSwap:
    case PacketOpcode::kFetchAdd:
    case PacketOpcode::kCongestionNotification:
    case PacketOpcode::kSelectiveNak:
      return false;
    default:
      return true;
  }
}

void DecodeHeader(const uint8_t* p, Packet* packet) {
  packet->solicited = (p[1] & kSolicited) != 0;
  packet->pkey = base::LoadBig16(p + 2);
  packet->destination = base::LoadBig24(p + 5);
  packet->ack_request = (p[8] & kAckRequest) != 0;
  packet->psn = base::LoadBig24(p + 9);
  p += kBthLength;
  if (HasDeth(packet->opcode)) {
    packet->qkey = base::LoadBig32(p);
    packet->source_queue_pair = base::LoadBig24(p + 5);
    p += 8;
  }
  if (HasReth(packet->opcode)) {
    packet->remote_address = base::LoadBig64(p);
    packet->rkey = base::LoadBig32(p + 8);
    packet->dma_length = base::LoadBig32(p + 12);
    p += 16;
  }
  if (HasAtomicEth(packet->opcode)) {
    packet->remote_address = base::LoadBig64(p);
    packet->rkey = base::LoadBig32(p + 8);
    packet->swap_or_add = base::LoadBig64(p + 12);
    packet->compare = base::LoadBig64(p + 20);
    p += 28;
  }
  if (HasAeth(packet->opcode)) {
    packet->syndrome = p[0];
    packet->msn = base::LoadBig24(p + 1);
    p += 4;
  }
  if (HasAtomicAckEth(packet->opcode)) {
    packet->original = base::LoadBig64(p);
    p += 8;
  }
  if (HasImmediate(packet->opcode)) packet->immediate = base::LoadBig32(p);
  if (HasIeth(packet->opcode)) packet->rkey = base::LoadBig32(p);
  if (packet->opcode == PacketOpcode::kSelectiveNak) {
    packet->swap_or_add = base::LoadBig64(p);
    packet->compare = base::LoadBig64(p + 8);
  }
}

}  // namespace

uint32_t DatagramLength(const Packet& packet) {
  const uint32_t payload = packet.payload_length();
  return HeaderLength(packet.opcode) + payload + PadLength(payload) + kIcrcLength;
}

uint32_t EthernetBytes(const Packet& packet) {
  constexpr uint32_t kFrame = 8 + 12 + 14 + 4;
  constexpr uint32_t kUdpHeader = 8;
  return kFrame + (packet.peer.is_ipv4() ? 20 : 40) + kUdpHeader + DatagramLength(packet);
}

uint32_t EncodeHeader(const Packet& packet, uint8_t* header) {
  uint8_t* p = header;
  p[0] = static_cast<uint8_t>(packet.opcode);
  p[1] =
      static_cast<uint8_t>((packet.solicited ? kSolicited : 0) | kMigrated | PadLength(packet.payload_length()) << 4);
  base::StoreBig16(p + 2, packet.pkey);
  const bool notification = packet.opcode == PacketOpcode::kCongestionNotification;
  p[kBthMaskedByte] = notification ? kBecn : 0;
  base::StoreBig24(p + 5, packet.destination);
  p[8] = packet.ack_request ? kAckRequest : 0;
  base::StoreBig24(p + 9, packet.psn);
  p += kBthLength;
  if (HasDeth(packet.opcode)) {
    base::StoreBig32(p, packet.qkey);
    base::StoreBig32(p + 4, packet.source_queue_pair & 0xffffff);
    p += 8;
  }
  if (HasReth(packet.opcode)) {
    base::StoreBig64(p, packet.remote_address);
    base::StoreBig32(p + 8, packet.rkey);
    base::StoreBig32(p + 12, packet.dma_length);
    p += 16;
  }
  if (HasAtomicEth(packet.opcode)) {
    base::StoreBig64(p, packet.remote_address);
    base::StoreBig32(p + 8, packet.rkey);
    base::StoreBig64(p + 12, packet.swap_or_add);
    base::StoreBig64(p + 20, packet.compare);
    p += 28;
  }
  if (HasAeth(packet.opcode)) {
    p[0] = packet.syndrome;
    base::StoreBig24(p + 1, packet.msn);
    p += 4;
  }
  if (HasAtomicAckEth(packet.opcode)) {
    base::StoreBig64(p, packet.original);
    p += 8;
  }
  if (HasImmediate(packet.opcode)) {
    base::StoreBig32(p, packet.immediate);
    p += 4;
  }
  if (HasIeth(packet.opcode)) {
    base::StoreBig32(p, packet.rkey);
    p += 4;
  }
  if (packet.opcode == PacketOpcode::kSelectiveNak) {
    base::StoreBig64(p, packet.swap_or_add);
    base::StoreBig64(p + 8, packet.compare);
    p += 16;
  }
  if (notification) {
    std::memset(p, 0, kReservedLength);
    p += kReservedLength;
  }
  return static_cast<uint32_t>(p - header);
}

const char* ToString(DecodeResult result) {
  switch (result) {
    case DecodeResult::kOk:
      return "ok";
    case DecodeResult::kTooShort:
      return "too short";
    case DecodeResult::kTransportVersion:
      return "transport version";
    case DecodeResult::kUnknownOpcode:
      return "unknown opcode";
    case DecodeResult::kTruncatedHeader:
      return "truncated header";
    case DecodeResult::kUnalignedLength:
      return "unaligned length";
    case DecodeResult::kBadPadCount:
      return "bad pad count";
    case DecodeResult::kUnexpectedPayload:
      return "unexpected payload";
    case DecodeResult::kPayloadTooLong:
      return "payload too long";
  }
  return "?";
}

DecodeResult Decode(absl::Span<const uint8_t> datagram, Packet* packet) {
  if (datagram.size() < kMinDatagram) return DecodeResult::kTooShort;
  const uint8_t* p = datagram.data();
  const auto opcode = static_cast<PacketOpcode>(p[0]);
  const uint32_t pad = p[1] >> 4 & 3;
  const uint32_t header = HeaderLength(opcode);
  if ((p[1] & kVersionMask) != 0) return DecodeResult::kTransportVersion;
  if (!IsKnown(opcode)) return DecodeResult::kUnknownOpcode;
  if (datagram.size() < header + kIcrcLength) return DecodeResult::kTruncatedHeader;
  const uint64_t padded = datagram.size() - header - kIcrcLength;
  if (padded % 4 != 0) return DecodeResult::kUnalignedLength;
  if (pad > padded) return DecodeResult::kBadPadCount;
  if (padded != 0 && !MayCarryPayload(opcode)) return DecodeResult::kUnexpectedPayload;
  if (padded - pad > kMaxMtu) return DecodeResult::kPayloadTooLong;

  packet->Reset();
  packet->opcode = opcode;
  DecodeHeader(p, packet);
  if (padded != 0) {
    packet->slices = 1;
    packet->payload[0] = {p + header, static_cast<uint32_t>(padded - pad)};
  }
  return DecodeResult::kOk;
}

uint32_t ReceivedIcrc(absl::Span<const uint8_t> datagram) {
  return base::LoadLittle<uint32_t>(datagram.data() + datagram.size() - kIcrcLength);
}

}  // namespace tokamak::verbs::soft

#include "lib/verbs/soft/shm/packet_record.h"

#include <cstring>

#include "lib/verbs/soft/packets/datagram.h"

namespace tokamak::verbs::soft {
namespace {

struct Origin {
  uint32_t length;  // of the wire's bytes, with room for an ICRC
  uint16_t udp_port;
  uint8_t traffic_class;
  uint8_t corrupt;  // not 0: damaged on purpose
  std::array<uint8_t, 16> ip;
  std::array<uint8_t, 16> group;
};
static_assert(sizeof(Origin) == kRecordOrigin);

}  // namespace

uint32_t RecordLength(const Packet& packet) { return kRecordOrigin + DatagramLength(packet); }

void WriteRecord(const Packet& packet, const Address& source, uint8_t* out) {
  Origin origin;
  origin.length = DatagramLength(packet);
  origin.udp_port = source.port;
  origin.traffic_class = TrafficClassOf(packet);
  origin.corrupt = packet.corrupt ? 1 : 0;
  origin.ip = source.ip;
  origin.group = packet.group;
  std::memcpy(out, &origin, sizeof(origin));
  uint8_t* at = out + sizeof(origin);
  at += EncodeHeader(packet, at);
  uint32_t payload = 0;
  for (const PayloadSlice& slice : packet.pieces()) {
    if (slice.data != nullptr) {
      std::memcpy(at, slice.data, slice.length);
    } else {
      std::memset(at, 0, slice.length);
    }
    at += slice.length;
    payload += slice.length;
  }
  std::memset(at, 0, PadLength(payload) + kIcrcLength);
}

bool ReadRecord(absl::Span<const uint8_t> record, Packet* packet) {
  Origin origin;
  if (record.size() < sizeof(origin)) return false;
  std::memcpy(&origin, record.data(), sizeof(origin));
  if (origin.length > record.size() - sizeof(origin)) return false;
  if (Decode(record.subspan(sizeof(origin), origin.length), packet) != DecodeResult::kOk) return false;
  packet->peer = Address();
  packet->peer.ip = origin.ip;
  packet->peer.port = origin.udp_port;
  packet->group = origin.group;
  packet->corrupt = origin.corrupt != 0;
  SetTrafficClass(origin.traffic_class, packet);
  return true;
}

}  // namespace tokamak::verbs::soft

// One UDP datagram: what Decode takes is what EncodeDatagram writes, and the ICRC of IPv4 and of
// IPv6 is found again.
#include <algorithm>
#include <optional>
#include <vector>

#include "lib/base/check.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/packets/icrc.h"
#include "lib/verbs/soft/packets/wire.h"
#include "lib/verbs/soft/udp/ipv4.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace tokamak::fuzz {
namespace {

using namespace verbs::soft;  // NOLINT: its whole wire is the subject

using Bytes = absl::Span<const uint8_t>;

const Bytes PayloadOf(const Packet& packet) {
  return packet.slices == 0 ? Bytes() : Bytes(packet.payload[0].data, packet.payload[0].length);
}

void CheckSame(const Packet& a, const Packet& b) {
  CHECK(a.opcode == b.opcode && a.solicited == b.solicited && a.ack_request == b.ack_request);
  CHECK(a.pkey == b.pkey && a.destination == b.destination && a.psn == b.psn);
  CHECK(a.remote_address == b.remote_address && a.rkey == b.rkey && a.dma_length == b.dma_length);
  CHECK(a.swap_or_add == b.swap_or_add && a.compare == b.compare && a.original == b.original);
  CHECK(a.syndrome == b.syndrome && a.msn == b.msn && a.immediate == b.immediate);
  CHECK(a.qkey == b.qkey && a.source_queue_pair == b.source_queue_pair);
  CHECK(PayloadOf(a) == PayloadOf(b));
}

void CheckDecoded(const Packet& packet, Bytes datagram) {
  CHECK(IsKnown(packet.opcode));
  CHECK(packet.destination <= kPsnMask && packet.psn <= kPsnMask && packet.msn <= kPsnMask);
  CHECK_LE(packet.slices, 1u);
  CHECK_LE(packet.payload_length(), verbs::kMaxMtu);
  if (packet.slices == 0) return;
  const PayloadSlice& slice = packet.payload[0];
  CHECK(slice.data >= datagram.data() + kBthLength);
  CHECK(slice.data + slice.length + kIcrcLength <= datagram.data() + datagram.size());
}

// Both ways between bytes and packet, and the ICRC between these two addresses.
void CheckRoundTrip(const Packet& packet, Bytes datagram, const IcrcFlow& flow, uint16_t identification) {
  CHECK_EQ(DatagramLength(packet), datagram.size());
  uint8_t again[kMaxDatagram];
  const uint32_t length = EncodeDatagram(packet, flow, identification, again);
  CHECK_EQ(length, datagram.size());
  Packet decoded;
  CHECK(Decode({again, length}, &decoded) == DecodeResult::kOk);
  CheckSame(packet, decoded);

  const uint32_t icrc = flow.OfDatagram(identification, {again, length});
  CHECK_EQ(icrc, ReceivedIcrc({again, length}));
  again[kBthMaskedByte] ^= 0xff;  // may change on the way
  CHECK_EQ(icrc, flow.OfDatagram(identification, {again, length}));
  if (!flow.is_ipv4()) return;
  static IdentificationSolver solver;
  const auto assumed = static_cast<uint16_t>(identification ^ 0x5a5a);
  const std::optional<uint16_t> found = solver.Solve(assumed, flow.OfDatagram(assumed, {again, length}), icrc, length);
  CHECK(found.has_value() && *found == identification);
}

// As soft:raw sees a datagram: behind its headers.
void TryRaw(Bytes given) {
  const std::vector<uint8_t> bytes(given.begin(), given.end());
  const std::optional<Ipv4AndUdp> header = ReadIpv4AndUdp(bytes);
  if (!header.has_value()) return;
  uint8_t written[kIpv4AndUdpHeader];
  WriteIpv4AndUdp(header->source, header->destination, header->identification, kMinDatagram, written);
  const std::optional<Ipv4AndUdp> again = ReadIpv4AndUdp(written);
  CHECK(again.has_value() && again->source == header->source && again->destination == header->destination);
  CHECK(again->identification == header->identification && again->dont_fragment);
}

void Try(Bytes given, uint16_t identification) {
  TryRaw(given);
  static const IcrcFlow ipv4(*verbs::Address::Parse("10.0.0.1:50000"), *verbs::Address::Parse("10.0.0.2:4791"));
  static const IcrcFlow ipv6(*verbs::Address::Parse("[fd00::1]:50000"), *verbs::Address::Parse("[fd00::2]:4791"));
  const std::vector<uint8_t> datagram(given.begin(), given.end());  // of its exact size: a step beyond it is seen
  Packet packet;
  const DecodeResult result = Decode(datagram, &packet);
  CHECK_NE(ToString(result)[0], '?');
  if (result != DecodeResult::kOk) return;
  CheckDecoded(packet, datagram);
  CheckRoundTrip(packet, datagram, ipv4, identification);
  CheckRoundTrip(packet, datagram, ipv6, identification);
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Input input(data, size);
  const auto identification = input.Take<uint16_t>();
  tokamak::fuzz::Try(input.Rest(), identification);
  return 0;
}

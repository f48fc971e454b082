#include "sim/network/byte_fabric.h"

#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/verbs/soft/fabrics/forwarding_port.h"
#include "lib/verbs/soft/packets/datagram.h"

namespace tokamak::sim {
namespace {

using verbs::Address;
using verbs::soft::Decode;
using verbs::soft::DecodeResult;
using verbs::soft::DestinationOf;
using verbs::soft::EncodeDatagram;
using verbs::soft::Fabric;
using verbs::soft::ForwardingPort;
using verbs::soft::IcrcFlow;
using verbs::soft::IdentificationSolver;
using verbs::soft::kBthMaskedByte;
using verbs::soft::kMaxDatagram;
using verbs::soft::Packet;
using verbs::soft::Port;
using verbs::soft::PortCallbacks;
using verbs::soft::ReceivedIcrc;
using verbs::soft::WithRocePort;

constexpr size_t kBatch = 64;

class BytePort final : public ForwardingPort {
 public:
  explicit BytePort(base::Random random) : random_(random), bytes_(kBatch * kMaxDatagram), packets_(kBatch) {}

  absl::Status Open(Fabric& inner, base::EventLoop& loop, const Address& address, PortCallbacks callbacks) {
    PortCallbacks ours;
    ours.on_ready = std::move(callbacks.on_ready);
    ours.on_packets = [this, theirs = std::move(callbacks.on_packets)](absl::Span<const Packet> packets) {
      for (const Packet& packet : packets) {
        if (packet.corrupt) CheckDamageIsSeen(packet);
      }
      theirs(packets);
    };
    return OpenInner(inner, loop, address, std::move(ours));
  }

  size_t Send(absl::Span<const Packet> packets) override {
    size_t taken = 0;
    while (taken < packets.size()) {
      const absl::Span<const Packet> batch = packets.subspan(taken, kBatch);
      for (size_t i = 0; i < batch.size(); ++i) packets_[i] = ThroughBytes(batch[i], &bytes_[i * kMaxDatagram]);
      const size_t sent = inner().Send(absl::MakeConstSpan(packets_).first(batch.size()));
      taken += sent;
      if (sent < batch.size()) break;
    }
    return taken;
  }

 private:
  Packet ThroughBytes(const Packet& packet, uint8_t* bytes) {
    const IcrcFlow flow(WithRocePort(inner().address()), DestinationOf(packet.peer, inner().address()));
    const auto identification = static_cast<uint16_t>(random_.Next());
    Packet sound = packet;
    sound.corrupt = false;
    const uint32_t length = EncodeDatagram(sound, flow, identification, bytes);

    const absl::Span<const uint8_t> datagram(bytes, length);
    Packet decoded;
    const DecodeResult result = Decode(datagram, &decoded);
    CHECK(result == DecodeResult::kOk) << ToString(result) << ", opcode " << static_cast<int>(packet.opcode);
    CHECK_EQ(decoded.payload_length(), packet.payload_length());
    if (flow.is_ipv4()) {
      const std::optional<uint16_t> solved =
          solver_.Solve(0, flow.OfDatagram(0, datagram), ReceivedIcrc(datagram), length);
      CHECK(solved == identification) << "opcode " << static_cast<int>(packet.opcode) << ", " << length << " bytes";
    }
    decoded.corrupt = packet.corrupt;
    decoded.peer = packet.peer;
    decoded.source_port = packet.source_port;
    decoded.ecn = packet.ecn;
    decoded.dscp = packet.dscp;
    return decoded;
  }

  // Flips a bit, in any byte except the masked one.
  void CheckDamageIsSeen(const Packet& packet) {
    const IcrcFlow flow(DestinationOf(packet.peer, inner().address()), WithRocePort(inner().address()));
    Packet sound = packet;
    sound.corrupt = false;
    const uint32_t length = EncodeDatagram(sound, flow, 0, bytes_.data());
    const uint64_t byte = kBthMaskedByte + 1 + random_.Below(length - kBthMaskedByte - 1);
    bytes_[byte] ^= static_cast<uint8_t>(1 << random_.Below(8));
    const absl::Span<const uint8_t> datagram(bytes_.data(), length);
    CHECK_NE(flow.OfDatagram(0, datagram), ReceivedIcrc(datagram));
  }

  base::Random random_;
  IdentificationSolver solver_;
  std::vector<uint8_t> bytes_;
  std::vector<Packet> packets_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Port>> ByteFabric::Open(base::EventLoop& loop, const Address& address,
                                                       PortCallbacks callbacks) {
  auto port = std::make_unique<BytePort>(random_.Fork(ports_opened_++));
  if (absl::Status status = port->Open(inner_, loop, address, std::move(callbacks)); !status.ok()) return status;
  return port;
}

}  // namespace tokamak::sim

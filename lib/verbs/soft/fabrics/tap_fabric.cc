#include "lib/verbs/soft/fabrics/tap_fabric.h"

#include <array>
#include <utility>

#include "lib/verbs/soft/fabrics/forwarding_port.h"
#include "lib/verbs/soft/packets/datagram.h"

namespace tokamak::verbs::soft {
namespace {

class TapPort final : public ForwardingPort {
 public:
  TapPort(base::EventLoop& loop, WireTap& tap, TapFabric::Shows shows) : loop_(loop), tap_(tap), shows_(shows) {}

  absl::Status Open(Fabric& inner, const Address& address, PortCallbacks callbacks) {
    PortCallbacks ours = callbacks;
    if (shows_ != TapFabric::Shows::kSent) {
      ours.on_packets = [this, theirs = std::move(callbacks.on_packets)](absl::Span<const Packet> packets) {
        for (const Packet& packet : packets) Show(packet, packet.peer, DestinationOf(packet));
        theirs(packets);
      };
    }
    return OpenInner(inner, loop_, address, std::move(ours));
  }

  size_t Send(absl::Span<const Packet> packets) override {
    const size_t taken = inner().Send(packets);
    if (shows_ != TapFabric::Shows::kReceived) {
      for (const Packet& packet : packets.first(taken)) Show(packet, inner().address(), packet.peer);
    }
    return taken;
  }

 private:
  Address DestinationOf(const Packet& packet) const {
    Address destination = inner().address();
    if (packet.came_to_group()) destination.ip = packet.group;
    return destination;
  }

  void Show(const Packet& packet, const Address& source, const Address& destination) {
    Datagram datagram;
    datagram.time = loop_.Now();
    datagram.source = soft::DestinationOf(source, inner().address());
    datagram.destination = soft::DestinationOf(destination, inner().address());
    datagram.traffic_class = TrafficClassOf(packet);
    const IcrcFlow flow(datagram.source, datagram.destination);
    const PayloadSlice piece = {bytes_.data(), EncodeDatagram(packet, flow, datagram.identification, bytes_.data())};
    datagram.pieces = absl::MakeConstSpan(&piece, 1);
    tap_.Show(datagram);
  }

  base::EventLoop& loop_;
  WireTap& tap_;
  const TapFabric::Shows shows_;
  std::array<uint8_t, kMaxDatagram> bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Port>> TapFabric::Open(base::EventLoop& loop, const Address& address,
                                                      PortCallbacks callbacks) {
  auto port = std::make_unique<TapPort>(loop, tap_, shows_);
  if (absl::Status status = port->Open(inner_, address, std::move(callbacks)); !status.ok()) return status;
  return port;
}

}  // namespace tokamak::verbs::soft

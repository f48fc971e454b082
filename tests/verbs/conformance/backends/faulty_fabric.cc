#include "tests/verbs/conformance/backends/faulty_fabric.h"

namespace tokamak::verbs::conformance {

class FaultyFabric::FaultyPort final : public soft::Port {
 public:
  FaultyPort(const std::atomic<bool>& gone, double loss, base::Random random)
      : gone_(gone), loss_(loss), random_(random) {}

  void Attach(std::unique_ptr<soft::Port> below) { below_ = std::move(below); }

  size_t Send(absl::Span<const soft::Packet> packets) override {
    if (gone_) return packets.size();
    if (loss_ == 0) return below_->Send(packets);
    for (size_t i = 0; i < packets.size(); ++i) {
      if (Loses(packets[i])) continue;
      if (below_->Send(packets.subspan(i, 1)) == 0) return i;
    }
    return packets.size();
  }

  const Address& address() const override { return below_->address(); }
  uint32_t max_mtu() const override { return below_->max_mtu(); }
  uint64_t receive_window() const override { return below_->receive_window(); }

 private:
  using Name = std::tuple<Address, uint32_t, soft::PacketOpcode, uint32_t>;

  bool Loses(const soft::Packet& packet) {
    if (!random_.Chance(loss_)) return false;
    if (packet.destination == soft::kManagementQueuePair) return true;  // is asked again until a deadline
    int& losses = losses_[Name(packet.peer, packet.destination, packet.opcode, packet.psn)];
    return ++losses <= kMostLossesOfAPacket;
  }

  const std::atomic<bool>& gone_;
  const double loss_;
  base::Random random_;
  std::map<Name, int> losses_;
  std::unique_ptr<soft::Port> below_;
};

absl::StatusOr<std::unique_ptr<soft::Port>> FaultyFabric::Open(base::EventLoop& loop, const Address& address,
                                                               soft::PortCallbacks callbacks) {
  const size_t index = opened_++;
  if (index >= kMaxPorts) return absl::ResourceExhaustedError("a FaultyFabric has few ports");
  auto port = std::make_unique<FaultyPort>(gone_[index], loss_, random_.Fork(index));
  callbacks.on_packets = [&gone = gone_[index],
                          receive = std::move(callbacks.on_packets)](absl::Span<const soft::Packet> packets) {
    if (!gone) receive(packets);
  };
  auto below = below_.Open(loop, address, std::move(callbacks));
  if (!below.ok()) return below.status();
  port->Attach(*std::move(below));
  return port;
}

}  // namespace tokamak::verbs::conformance

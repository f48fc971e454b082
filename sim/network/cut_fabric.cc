#include "sim/network/cut_fabric.h"

#include "lib/verbs/soft/fabrics/forwarding_port.h"

namespace tokamak::sim {

using verbs::soft::Packet;
using verbs::soft::Port;

namespace {

// Hands the runs of `packets` that pass to `take`, until it takes (and returns) less than all.
// Returns the packets that are done with.
template <typename Passes, typename Take>
size_t InParts(absl::Span<const Packet> packets, const Passes& passes, const Take& take) {
  size_t done = 0;
  while (done < packets.size()) {
    size_t end = done;
    while (end < packets.size() && passes(packets[end])) ++end;
    if (end == done) {
      ++done;  // lost
      continue;
    }
    const size_t taken = take(packets.subspan(done, end - done));
    done += taken;
    if (done != end) break;
  }
  return done;
}

}  // namespace

class CutFabric::CutPort final : public verbs::soft::ForwardingPort {
 public:
  CutPort(const CutFabric& fabric, const Address& address) : fabric_(fabric), own_(address) {}

  size_t Send(absl::Span<const Packet> packets) override {
    return InParts(
        packets, [this](const Packet& packet) { return fabric_.Passes(own_, packet.peer); },
        [this](absl::Span<const Packet> part) { return inner().Send(part); });
  }

 private:
  const CutFabric& fabric_;
  const Address own_;
};

absl::StatusOr<std::unique_ptr<Port>> CutFabric::Open(base::EventLoop& loop, const Address& address,
                                                      verbs::soft::PortCallbacks callbacks) {
  verbs::soft::PortCallbacks below;
  below.on_ready = std::move(callbacks.on_ready);
  below.on_packets = [this, address, above = std::move(callbacks.on_packets)](absl::Span<const Packet> packets) {
    InParts(
        packets, [&](const Packet& packet) { return Passes(packet.peer, address); },
        [&](absl::Span<const Packet> part) {
          above(part);
          return part.size();
        });
  };
  auto port = std::make_unique<CutPort>(*this, address);
  if (absl::Status status = port->OpenInner(fabric_, loop, address, std::move(below)); !status.ok()) return status;
  return port;
}

void CutFabric::Partition(absl::Span<const Address> side) {
  side_.clear();
  for (const Address& address : side) side_.insert(IpOf(address));
}

void CutFabric::Heal() {
  cut_.clear();
  side_.clear();
}

bool CutFabric::Passes(const Address& from, const Address& to) const {
  if (cut_.empty() && side_.empty()) return true;
  const Address a = IpOf(from), b = IpOf(to);
  return cut_.count({a, b}) == 0 && side_.count(a) == side_.count(b);
}

}  // namespace tokamak::sim

// A network in virtual time with two sides, joined by one bottleneck in each direction that all
// flows share.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "tests/verbs/soft/bottleneck.h"

namespace tokamak::verbs::soft {

class BottleneckFabric final : public Fabric {
 public:
  // Packets to 10.0.2.x pass `there`, all others `back`. `loop` is the network's own; the fabric
  // outlives its ports.
  BottleneckFabric(base::EventLoop& loop, const BottleneckOptions& there, const BottleneckOptions& back)
      : there_(loop, there, [this](Bottleneck::Flight flight) { Deliver(std::move(flight)); }),
        back_(loop, back, [this](Bottleneck::Flight flight) { Deliver(std::move(flight)); }) {}

  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override {
    return std::make_unique<End>(*this, loop, WithRocePort(address), std::move(callbacks));
  }

  const BottleneckCounters& there() const { return there_.counters(); }
  const BottleneckCounters& back() const { return back_.counters(); }

 private:
  class End final : public Port {
   public:
    End(BottleneckFabric& fabric, base::EventLoop& loop, const Address& address, PortCallbacks callbacks)
        : fabric_(fabric), loop_(loop), address_(address), callbacks_(std::move(callbacks)) {
      fabric_.ends_[address_] = this;
    }
    ~End() override { fabric_.ends_.erase(address_); }

    size_t Send(absl::Span<const Packet> packets) override {
      for (const Packet& packet : packets) {
        (packet.peer.ip[14] == 2 ? fabric_.there_ : fabric_.back_).Offer(packet, address_);
      }
      return packets.size();
    }
    const Address& address() const override { return address_; }
    uint32_t max_mtu() const override { return kMaxMtu; }
    uint64_t receive_window() const override { return 4 << 20; }

    void Take(Bottleneck::Flight flight) {
      arrived_.push_back(std::move(flight));
      if (!hand_over_.armed()) hand_over_ = loop_.Post([this] { HandOver(); });
    }

   private:
    void HandOver() {
      const std::vector<Bottleneck::Flight> arrived = std::exchange(arrived_, {});
      std::vector<Packet> packets;
      for (const Bottleneck::Flight& flight : arrived) {
        packets.push_back(flight.packet);
        packets.back().peer = flight.from;
      }
      callbacks_.on_packets(packets);
    }

    BottleneckFabric& fabric_;
    base::EventLoop& loop_;
    const Address address_;
    const PortCallbacks callbacks_;
    std::vector<Bottleneck::Flight> arrived_;
    base::Timer hand_over_;
  };

  void Deliver(Bottleneck::Flight flight) {
    const auto end = ends_.find(WithRocePort(flight.packet.peer));
    if (end != ends_.end()) end->second->Take(std::move(flight));
  }

  std::map<Address, End*> ends_;
  Bottleneck there_;
  Bottleneck back_;
};

}  // namespace tokamak::verbs::soft

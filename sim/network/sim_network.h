// SimNetwork is the seeded fabric (sim_fabric.h) in our own virtual time.
#pragma once

#include <memory>

#include "sim/network/network.h"
#include "sim/network/sim_fabric.h"
#include "sim/time/sim_time.h"

namespace tokamak::sim {

class SimNetwork final : public Network {
 public:
  SimNetwork(const NetworkOptions& options, base::Trace& trace)
      : loop_(time_.MakeLoop()), fabric_(*loop_, options.seed, FabricOptionsOf(options), trace) {}

  SimTime& time() override { return time_; }
  SimFabric& fabric() override { return fabric_; }

  void Cut(const verbs::Address& from, const verbs::Address& to) override { fabric_.Cut(from, to); }
  void Mend(const verbs::Address& from, const verbs::Address& to) override { fabric_.Mend(from, to); }
  void Partition(absl::Span<const verbs::Address> side) override { fabric_.Partition(side); }
  void Heal() override { fabric_.Heal(); }
  void SetAllLinks(const LinkOptions& options) override { fabric_.SetAllLinks(options); }
  bool has_links() const override { return true; }
  void SetLink(const verbs::Address& from, const verbs::Address& to, const LinkOptions& options) override {
    fabric_.SetLink(from, to, options);
  }

 private:
  static SimFabricOptions FabricOptionsOf(const NetworkOptions& options) {
    SimFabricOptions fabric;
    fabric.link = options.link;
    return fabric;
  }

  SimTime time_;
  const std::unique_ptr<base::EventLoop> loop_;
  SimFabric fabric_;
};

inline std::unique_ptr<Network> MakeSimNetwork(const NetworkOptions& options, base::Trace& trace) {
  return std::make_unique<SimNetwork>(options, trace);
}

}  // namespace tokamak::sim

// SwitchedNetwork is a switch for each rail, with a cable to each host (fabric/switched_fabric.h),
// in any virtual time.
#pragma once

#include <memory>

#include "lib/base/event_loop.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/network/cut_fabric.h"
#include "sim/network/network.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

class SwitchedNetwork final : public Network {
 public:
  // Takes latency, rate and losses of `options.link`.
  SwitchedNetwork(std::unique_ptr<VirtualTime> time, const NetworkOptions& options);

  VirtualTime& time() override { return *time_; }
  verbs::soft::Fabric& fabric() override { return cuts_; }

  void Cut(const verbs::Address& from, const verbs::Address& to) override { cuts_.Cut(from, to); }
  void Mend(const verbs::Address& from, const verbs::Address& to) override { cuts_.Mend(from, to); }
  void Partition(absl::Span<const verbs::Address> side) override { cuts_.Partition(side); }
  void Heal() override { cuts_.Heal(); }
  void SetAllLinks(const LinkOptions& options) override;
  bool has_links() const override { return false; }
  void SetLink(const verbs::Address& from, const verbs::Address& to, const LinkOptions& options) override;

 private:
  const std::unique_ptr<VirtualTime> time_;
  const std::unique_ptr<base::EventLoop> loop_;
  const std::unique_ptr<SwitchedFabric> switched_;
  CutFabric cuts_;
};

}  // namespace tokamak::sim

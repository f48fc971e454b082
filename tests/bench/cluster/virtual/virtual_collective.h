// VirtualCollective keeps the ranks of a simulated cluster in step: the hub hears all of them, and
// tells each on its own loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/event_loop.h"
#include "tests/bench/cluster/collective.h"

namespace tokamak::bench {

class VirtualCollective;

// The state that the ranks of one run share. Must outlive them.
class VirtualHub final {
 public:
  explicit VirtualHub(uint32_t ranks) : ranks_(ranks) {}

  uint32_t ranks() const { return static_cast<uint32_t>(ranks_.size()); }

 private:
  friend class VirtualCollective;
  void TellAllIfComplete();

  std::vector<VirtualCollective*> ranks_;
};

class VirtualCollective final : public Collective {
 public:
  VirtualCollective(VirtualHub& hub, uint32_t rank, base::EventLoop& loop);
  ~VirtualCollective() override;

  uint32_t rank() const override { return rank_; }
  uint32_t ranks() const override { return hub_.ranks(); }
  base::Pending Gather(absl::Span<const uint8_t> mine, GatherCallback done) override;
  base::Pending Barrier(base::Task done) override;

 private:
  friend class VirtualHub;
  class Operation;

  void Answer();

  VirtualHub& hub_;
  const uint32_t rank_;
  bool waits_ = false;  // for the others
  std::vector<uint8_t> mine_;
  std::vector<uint8_t> all_;
  Operation* operation_ = nullptr;
  const std::unique_ptr<base::Signal> told_;
};

}  // namespace tokamak::bench

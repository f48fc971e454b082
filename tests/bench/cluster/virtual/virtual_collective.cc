#include "tests/bench/cluster/virtual/virtual_collective.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::bench {

class VirtualCollective::Operation final : public base::Handle {
 public:
  Operation(VirtualCollective& collective, GatherCallback done) : collective_(&collective), done_(std::move(done)) {}
  ~Operation() override {
    if (collective_ != nullptr) collective_->operation_ = nullptr;
  }
  // May drop this.
  void Answer(absl::Span<const uint8_t> all) {
    collective_ = nullptr;
    const GatherCallback done = std::move(done_);
    done(all);
  }
  void Orphan() { collective_ = nullptr; }

 private:
  VirtualCollective* collective_;
  GatherCallback done_;
};

void VirtualHub::TellAllIfComplete() {
  const bool complete = std::all_of(ranks_.begin(), ranks_.end(),
                                    [](const VirtualCollective* rank) { return rank != nullptr && rank->waits_; });
  if (!complete) return;
  std::vector<uint8_t> all;
  for (const VirtualCollective* rank : ranks_) all.insert(all.end(), rank->mine_.begin(), rank->mine_.end());
  for (VirtualCollective* const rank : ranks_) {
    rank->waits_ = false;
    rank->all_ = all;
    rank->told_->Raise();
  }
}

VirtualCollective::VirtualCollective(VirtualHub& hub, uint32_t rank, base::EventLoop& loop)
    : hub_(hub), rank_(rank), told_(loop.MakeSignal([this] { Answer(); })) {
  hub_.ranks_[rank_] = this;
}

VirtualCollective::~VirtualCollective() {
  hub_.ranks_[rank_] = nullptr;
  if (operation_ != nullptr) operation_->Orphan();
}

base::Pending VirtualCollective::Gather(absl::Span<const uint8_t> mine, GatherCallback done) {
  CHECK(operation_ == nullptr) << "one collective at a time";
  mine_.assign(mine.begin(), mine.end());
  auto operation = std::make_unique<Operation>(*this, std::move(done));
  operation_ = operation.get();
  waits_ = true;
  hub_.TellAllIfComplete();
  return operation;
}

base::Pending VirtualCollective::Barrier(base::Task done) {
  return Gather({}, [done = std::move(done)](absl::Span<const uint8_t>) { done(); });
}

void VirtualCollective::Answer() {
  const std::vector<uint8_t> all = std::move(all_);
  if (Operation* const operation = std::exchange(operation_, nullptr)) operation->Answer(all);
}

}  // namespace tokamak::bench

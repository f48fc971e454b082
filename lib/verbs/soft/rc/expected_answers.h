// ExpectedAnswers are the answers to READs and atomics on the wire, and their part of the READ
// budget.
//
// Law: at most kMaxReads, by rising sequence. Thread rule: the NIC's mutex.
#pragma once

#include <array>
#include <cstdint>

#include "lib/verbs/soft/state/nic_state.h"

namespace tokamak::verbs::soft {

constexpr uint32_t kMaxReads = 128;  // outstanding READs and atomics, as requester and as responder

class ExpectedAnswers final {
 public:
  // `budget` outlives it.
  explicit ExpectedAnswers(ReadBudget& budget) : budget_(budget) {}

  uint32_t count() const { return count_; }

  // Adds one that ends before sequence `end` and holds `bytes` of the budget. There must be room.
  void Add(uint64_t end, uint64_t bytes) { ring_[(first_ + count_++) % kMaxReads] = {end, bytes}; }

  // Removes those that end at `sequence` or before.
  void RemoveUpTo(uint64_t sequence) {
    while (count_ > 0 && ring_[first_].end <= sequence) RemoveFirst();
  }

  void Clear() {
    while (count_ > 0) RemoveFirst();
  }

 private:
  struct Answer {
    uint64_t end = 0;
    uint64_t bytes = 0;
  };

  void RemoveFirst() {
    budget_.GiveBack(ring_[first_].bytes);
    first_ = (first_ + 1) % kMaxReads;
    --count_;
  }

  ReadBudget& budget_;
  std::array<Answer, kMaxReads> ring_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace tokamak::verbs::soft

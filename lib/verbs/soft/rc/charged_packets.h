// ChargedPackets are a queue pair's unacknowledged packets, as it took them from the send budget.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/verbs/soft/state/nic_state.h"

namespace tokamak::verbs::soft {

class ChargedPackets final {
 public:
  // `budget` must outlive it.
  explicit ChargedPackets(SendBudget& budget) : budget_(budget) {}

  bool empty() const { return count_ == 0; }

  // Takes one from the budget. Returns false, changing nothing, if that has no room.
  [[nodiscard]] bool Take() {
    if (!budget_.Take(empty())) return false;
    ++count_;
    return true;
  }

  // Gives back acknowledged packets. Packets sent before going back are given back already:
  // acknowledged late, they cost nothing.
  void GiveBack(uint64_t packets) {
    const uint64_t held = std::min(packets, count_);
    count_ -= held;
    budget_.GiveBack(held);
  }

  void Clear() { GiveBack(count_); }

 private:
  SendBudget& budget_;
  uint64_t count_ = 0;
};

}  // namespace tokamak::verbs::soft

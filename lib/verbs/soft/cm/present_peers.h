// PresentPeers remembers for a while the addresses that answered our questions
// (connection_rules.h).
//
// An address is remembered for the period of its answer and the next.
// Law: at most 2 * kMost addresses are remembered; to fill that, as many real hosts must answer.
// Thread rule: the NIC's mutex.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>

#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

class PresentPeers final {
 public:
  static constexpr size_t kMost = 1024;  // in one period

  // `period` is the present one; it never falls.
  void Add(const Address& peer, uint64_t period);
  bool Has(const Address& peer, uint64_t period);

 private:
  void Turn(uint64_t period);

  std::set<std::array<uint8_t, 16>> now_;  // IP addresses
  std::set<std::array<uint8_t, 16>> before_;
  uint64_t period_ = 0;
};

}  // namespace tokamak::verbs::soft

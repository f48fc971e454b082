// NumberShare says which numbers a NIC may give out that peers send back to it, in queue pairs
// and in the connection manager's IDs, where several NICs have one address: those whose highest
// bits are the NIC's own. So a packet says by its numbers which of them it is for.
#pragma once

#include <cstdint>

namespace tokamak::verbs::soft {

class NumberShare final {
 public:
  static constexpr int kBits = 8;
  static constexpr uint32_t kShares = 1 << kBits;

  // All numbers: the NIC is the only one at its address.
  NumberShare() = default;
  // `index` is below kShares.
  explicit NumberShare(uint32_t index) : whole_(false), index_(index) {}

  bool whole() const { return whole_; }
  uint32_t index() const { return index_; }

  // The number of the share that has the lower bits of `drawn`; both have `bits` bits.
  uint32_t Place(uint32_t drawn, int bits) const {
    const int own = bits - kBits;
    return whole_ ? drawn : index_ << own | (drawn & ((uint32_t{1} << own) - 1));
  }

  // The share that a number of `bits` bits is of, where addresses are shared.
  static uint32_t IndexOf(uint32_t number, int bits) { return number >> (bits - kBits); }

 private:
  bool whole_ = true;
  uint32_t index_ = 0;
};

constexpr int kQueuePairNumberBits = 24;
constexpr int kCommunicationIdBits = 32;  // also of a SIDR_REQ's request ID

}  // namespace tokamak::verbs::soft

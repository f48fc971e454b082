// NumberShare is the part of queue pair numbers and CM IDs that one of several NICs with one
// address gives out. The highest bits are the NIC's own, so a packet's numbers say which NIC it is
// for.
#pragma once

#include <cstdint>

namespace tokamak::verbs::soft {

class NumberShare final {
 public:
  static constexpr int kBits = 8;
  static constexpr uint32_t kShares = 1 << kBits;

  // All numbers: the NIC is alone at its address.
  NumberShare() = default;
  // `index` is below kShares.
  explicit NumberShare(uint32_t index) : whole_(false), index_(index) {}

  bool whole() const { return whole_; }
  uint32_t index() const { return index_; }

  // Returns the share's number with the lower bits of `drawn`, both `bits` wide.
  uint32_t Place(uint32_t drawn, int bits) const {
    const int own = bits - kBits;
    return whole_ ? drawn : index_ << own | (drawn & ((uint32_t{1} << own) - 1));
  }

  // Returns the share of a number of `bits` bits, where addresses are shared.
  static uint32_t IndexOf(uint32_t number, int bits) { return number >> (bits - kBits); }

 private:
  bool whole_ = true;
  uint32_t index_ = 0;
};

constexpr int kQueuePairNumberBits = 24;
constexpr int kCommunicationIdBits = 32;  // also of SIDR request IDs

}  // namespace tokamak::verbs::soft

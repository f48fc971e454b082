// MissingPackets are those that selective NAKs ask for: each is sent again alone, once. A second
// loss is for the time-out.
//
// Bound: a window of packets. Thread rule: the NIC's mutex.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::verbs::soft {

class MissingPackets final {
 public:
  bool empty() const { return sequences_.empty(); }

  // Adds those missing before the last that the peer has; later ones may be on their way. `unacked`
  // is the first that it lacks, `sent` the first that was never sent.
  void Add(const Packet& nak, uint64_t unacked, uint64_t sent) {
    const auto has = [&](uint64_t sequence) {
      const uint64_t i = sequence - unacked - 1;
      return (((i < 64 ? nak.swap_or_add : nak.compare) >> (i % 64)) & 1) != 0;
    };
    uint64_t end = unacked + kHeldPackets;
    while (end > unacked && !has(end)) --end;
    end = std::min(std::max(end, unacked + 1), sent);
    for (uint64_t sequence = std::max(unacked, taken_to_); sequence < end; ++sequence) {
      if (sequence == unacked || !has(sequence)) sequences_.push_back(sequence);
    }
    taken_to_ = std::max(taken_to_, end);
  }

  // Takes out the next one and returns it; nothing if no unacknowledged one is left.
  std::optional<uint64_t> Next(uint64_t unacked) {
    while (next_ < sequences_.size() && sequences_[next_] < unacked) ++next_;
    if (next_ < sequences_.size()) return sequences_[next_++];
    sequences_.clear();
    next_ = 0;
    return std::nullopt;
  }

  void Clear() {
    sequences_.clear();
    next_ = 0;
    taken_to_ = 0;
  }

 private:
  std::vector<uint64_t> sequences_;
  size_t next_ = 0;
  uint64_t taken_to_ = 0;  // earlier ones are done, or were not missing
};

}  // namespace tokamak::verbs::soft

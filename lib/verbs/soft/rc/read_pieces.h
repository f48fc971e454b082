// ReadPieces cuts a READ into the pieces that are asked for one by one: several of them fill a
// window (while one is taken in, the next are on their way), but they are not too small.
//
// Law: a READ is cut once: a repeated one is cut alike, since a responder knows a request only as
// all new or all old.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/verbs/soft/state/nic_state.h"
#include "lib/verbs/soft/state/work_queue.h"

namespace tokamak::verbs::soft {

class ReadPieces final {
 public:
  static constexpr uint32_t kPerWindow = 4;
  static constexpr uint32_t kLeast = 16;  // packets, where the window holds that many
  static constexpr uint32_t kMostBytes = 128 * 1024;
  static_assert(kPerWindow >= ReadBudget::kReservedShare);

  // Returns the packets of a piece. `window`, in packets, and `budget`, in bytes, bound the answers
  // of the queue pair and of the NIC.
  static uint32_t Size(uint32_t window, uint64_t budget, uint32_t mtu) {
    const uint32_t several = std::max(window / kPerWindow, std::min(kLeast, window));
    const uint32_t by_window = std::min(several, kMostBytes / mtu);
    const uint64_t by_budget = budget / kPerWindow / mtu;
    return std::max(1u, static_cast<uint32_t>(std::min<uint64_t>(by_window, by_budget)));
  }

  // Returns the packets from `sequence` to the end of its piece.
  static uint64_t Left(const SendSlot& slot, uint64_t sequence) {
    const uint64_t piece_end = sequence + slot.piece - (sequence - slot.first) % slot.piece;
    return std::min(piece_end, slot.end) - sequence;
  }
};

}  // namespace tokamak::verbs::soft

// PauseFrame states for each priority how long the other end of a link must not send it. (802.1Qbb)
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.h"
#include "sim/fabric/link/rate.h"

namespace tokamak::sim {

constexpr uint8_t kPriorities = 8;

struct PauseFrame {
  // 512 bits at the link's rate.
  static constexpr uint32_t kQuantumBytes = 64;

  // The smallest Ethernet frame, with preamble and gap.
  static constexpr uint32_t kWireBytes = 64 + 20;

  uint8_t enabled = 0;                         // bits: the priorities that the frame names
  std::array<uint16_t, kPriorities> quanta{};  // 0: resume

  static base::Duration TimeOf(uint16_t quanta, const Rate& rate) { return rate.TimeOf(quanta * kQuantumBytes); }
};

}  // namespace tokamak::sim

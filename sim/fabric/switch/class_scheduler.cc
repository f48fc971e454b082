#include "sim/fabric/switch/class_scheduler.h"

#include "lib/verbs/types.h"

namespace tokamak::sim {

ClassScheduler::ClassScheduler(const SchedulingOptions& options) {
  const uint32_t frame = MostWireBytes(verbs::kMaxMtu);
  for (uint8_t i = 0; i < kPriorities; ++i) {
    if (options.weights[i] == SchedulingOptions::kStrict) strict_ = static_cast<uint8_t>(strict_ | 1u << i);
    quantum_[i] = options.weights[i] * frame;
  }
}

uint8_t ClassScheduler::Pick(uint8_t ready, const std::array<FrameQueue, kPriorities>& queues) {
  const uint32_t strict = ready & strict_;
  if (strict != 0) return static_cast<uint8_t>(31 - __builtin_clz(strict));
  // Alone, a priority takes nothing from others.
  if ((ready & (ready - 1)) == 0) return static_cast<uint8_t>(__builtin_ctz(ready));
  for (;;) {
    if ((ready & 1u << current_) != 0) {
      if (fresh_) deficit_[current_] += quantum_[current_];
      fresh_ = false;
      const uint32_t bytes = queues[current_].front()->wire_bytes;
      if (deficit_[current_] >= bytes) {
        deficit_[current_] -= bytes;
        return current_;
      }
    }
    Advance();
  }
}

void ClassScheduler::Advance() {
  current_ = static_cast<uint8_t>((current_ + 1) % kPriorities);
  fresh_ = true;
}

}  // namespace tokamak::sim

// ClassScheduler chooses which priority of a port sends next: strict priorities first, the highest
// first, then the others by deficit weighted round robin (Shreedhar and Varghese 1995).
//
// Law: while the same weighted priorities have frames and none is strict, each gets its weight's
// share of the bytes, to within a frame for each.
#pragma once

#include <array>
#include <cstdint>

#include "sim/fabric/link/pause_frame.h"
#include "sim/fabric/switch/frame_queue.h"

namespace tokamak::sim {

struct SchedulingOptions {
  static constexpr uint32_t kStrict = 0;

  // Notifications and network control (6 and 7) go first; the rest share alike.
  std::array<uint32_t, kPriorities> weights = {1, 1, 1, 1, 1, 1, kStrict, kStrict};
};

class ClassScheduler final {
 public:
  explicit ClassScheduler(const SchedulingOptions& options);

  // Returns one of the priorities in `ready` (bits, not 0); the caller sends its first frame.
  uint8_t Pick(uint8_t ready, const std::array<FrameQueue, kPriorities>& queues);

  // A priority without frames saves nothing up.
  void Empty(uint8_t priority) { deficit_[priority] = 0; }

 private:
  void Advance();

  std::array<uint32_t, kPriorities> quantum_{};  // bytes for each round; at least a frame
  std::array<uint32_t, kPriorities> deficit_{};
  uint8_t strict_ = 0;
  uint8_t current_ = 0;
  bool fresh_ = true;  // true if current_ has yet to get its quantum
};

}  // namespace tokamak::sim

// PauseSender remembers which priorities of one port the neighbour was asked to stop, says so in
// pause frames, and says it again before the neighbour would forget.
#pragma once

#include <cstdint>

#include "lib/base/event_loop.h"
#include "sim/fabric/switch/egress_port.h"

namespace tokamak::sim {

class PauseSender final {
 public:
  PauseSender(base::EventLoop& loop, EgressPort& egress, uint16_t quanta)
      : loop_(loop), egress_(egress), quanta_(quanta) {}

  bool stopped(uint8_t priority) const { return (stopped_ & 1u << priority) != 0; }

  // The neighbour shall stop, or go on, with a priority. Changing it is the caller's decision.
  void Stop(uint8_t priority, bool stop);

  // All that holds, once more: the neighbour is another one, or has forgotten.
  void SayAgain();

  // The frame that is sent now.
  PauseFrame Make();

 private:
  void ArmRefresh();

  base::EventLoop& loop_;
  EgressPort& egress_;
  const uint16_t quanta_;
  uint8_t stopped_ = 0;  // a bit for each priority
  uint8_t unsaid_ = 0;   // those that the next frame speaks of
  base::Timer refresh_;
};

}  // namespace tokamak::sim

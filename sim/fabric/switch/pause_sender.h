// PauseSender remembers which priorities of one port the neighbour was asked to stop, makes the
// pause frames, and repeats them before the neighbour would resume.
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

  // Asks the neighbour; it must be a change.
  void Stop(uint8_t priority, bool stop);

  // Repeats what holds: the neighbour is another one, or has forgotten.
  void SayAgain();

  PauseFrame Make();

 private:
  void ArmRefresh();

  base::EventLoop& loop_;
  EgressPort& egress_;
  const uint16_t quanta_;
  uint8_t stopped_ = 0;  // bits
  uint8_t unsaid_ = 0;   // bits of the next frame
  base::Timer refresh_;
};

}  // namespace tokamak::sim

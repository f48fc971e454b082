#include "sim/fabric/switch/pause_sender.h"

namespace tokamak::sim {

void PauseSender::Stop(uint8_t priority, bool stop) {
  const uint32_t bit = 1u << priority;
  stopped_ = static_cast<uint8_t>(stop ? stopped_ | bit : stopped_ & ~bit);
  unsaid_ = static_cast<uint8_t>(unsaid_ | bit);
  egress_.SendPause();
}

void PauseSender::SayAgain() {
  if (stopped_ == 0) return;
  unsaid_ = static_cast<uint8_t>(unsaid_ | stopped_);
  egress_.SendPause();
}

PauseFrame PauseSender::Make() {
  PauseFrame frame;
  // Repeats pauses that still hold: the frame costs the same, and their time begins anew.
  frame.enabled = static_cast<uint8_t>(unsaid_ | stopped_);
  for (uint8_t i = 0; i < kPriorities; ++i) frame.quanta[i] = stopped(i) ? quanta_ : uint16_t{0};
  unsaid_ = 0;
  ArmRefresh();
  return frame;
}

void PauseSender::ArmRefresh() {
  refresh_.Cancel();
  if (stopped_ == 0) return;
  const base::Duration time = PauseFrame::TimeOf(quanta_, egress_.link().parameters().rate);
  refresh_ = loop_.RunAfter(time / 2, [this] { SayAgain(); });
}

}  // namespace tokamak::sim

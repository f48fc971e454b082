#include "sim/fabric/switch/egress_port.h"

#include <algorithm>

namespace tokamak::sim {

EgressPort::~EgressPort() {
  for (FrameQueue& queue : queues_) {
    while (!queue.empty()) environment_.frames.Give(queue.Pop());
  }
}

void EgressPort::Enqueue(Frame* frame) {
  FrameQueue& queue = queues_[frame->priority];
  queue.Push(frame);
  filled_ = static_cast<uint8_t>(filled_ | 1u << frame->priority);
  PriorityCounters& counters = counters_.priorities[frame->priority];
  counters.most_queued = std::max(counters.most_queued, queue.bytes());
  if (environment_.observer != nullptr) environment_.observer->OnEnqueue(place_, *frame, queue.bytes());
  Kick();
}

void EgressPort::SendPause() {
  pause_due_ = true;
  Kick();
}

void EgressPort::OnPause(const PauseFrame& pause) {
  const uint8_t before = paused_;
  for (uint8_t i = 0; i < kPriorities; ++i) {
    if ((pause.enabled & 1u << i) == 0) continue;
    if (pause.quanta[i] == 0) {
      Resume(i);
    } else {
      Pause(i, PauseFrame::TimeOf(pause.quanta[i], link_.parameters().rate));
    }
  }
  ArmExpiry();
  if ((before & ~paused_) == 0) return;
  Kick();
  owner_.OnResumed(place_.port);
}

void EgressPort::ForgetPauses() {
  PauseFrame go_on;
  go_on.enabled = paused_;
  OnPause(go_on);
}

void EgressPort::Disregard(uint8_t priority, bool disregard) {
  const uint32_t bit = 1u << priority;
  disregarded_ = static_cast<uint8_t>(disregard ? disregarded_ | bit : disregarded_ & ~bit);
  Kick();
}

FrameQueue EgressPort::TakeQueue(uint8_t priority) {
  const FrameQueue taken = queues_[priority];
  queues_[priority] = FrameQueue();
  filled_ = static_cast<uint8_t>(filled_ & ~(1u << priority));
  scheduler_.Empty(priority);
  return taken;
}

void EgressPort::TellWhenIdle() {
  tell_idle_ = true;
  if (!armed_) Arm();
}

uint64_t EgressPort::frames_queued() const {
  uint64_t sum = 0;
  for (const FrameQueue& queue : queues_) sum += queue.frames();
  return sum;
}

PortCounters EgressPort::counters() const {
  PortCounters counters = counters_;
  for (uint8_t i = 0; i < kPriorities; ++i) {
    if (!paused(i)) continue;
    base::Duration& sum = counters.priorities[i].paused;
    sum = sum + (environment_.loop.Now() - since_[i]);
  }
  return counters;
}

void EgressPort::Kick() {
  if (starting_ || armed_ || !Startable()) return;
  if (link_.free()) {
    StartNext();
  } else {
    Arm();
  }
}

void EgressPort::Arm() {
  armed_ = true;
  free_ = environment_.loop.RunAt(link_.free_at(), [this] { OnFree(); });
}

void EgressPort::OnFree() {
  armed_ = false;
  if (Startable()) return StartNext();
  if (!tell_idle_) return;
  tell_idle_ = false;
  owner_.OnIdle(place_.port);
}

void EgressPort::StartNext() {
  starting_ = true;
  link_.Transmit(pause_due_ ? MakePauseFrame() : NextFrame());
  starting_ = false;
  if (Startable() || tell_idle_) Arm();
}

Frame* EgressPort::MakePauseFrame() {
  pause_due_ = false;
  Frame* frame = environment_.frames.Take();
  frame->is_pause = true;
  frame->is_bytes = false;
  frame->pause = owner_.MakePause(place_.port);
  frame->wire_bytes = PauseFrame::kWireBytes;
  return frame;
}

Frame* EgressPort::NextFrame() {
  const uint8_t priority = scheduler_.Pick(static_cast<uint8_t>(filled_ & ~blocked()), queues_);
  FrameQueue& queue = queues_[priority];
  Frame* frame = queue.Pop();
  if (queue.empty()) {
    filled_ = static_cast<uint8_t>(filled_ & ~(1u << priority));
    scheduler_.Empty(priority);
  }
  ++counters_.priorities[priority].sent;
  counters_.priorities[priority].sent_bytes += frame->wire_bytes;
  if (environment_.observer != nullptr) environment_.observer->OnDequeue(place_, *frame, queue.bytes());
  owner_.OnDequeue(place_.port, *frame);
  return frame;
}

void EgressPort::Pause(uint8_t priority, base::Duration time) {
  const base::Time now = environment_.loop.Now();
  until_[priority] = now + time;
  last_paused_[priority] = now;
  if (paused(priority)) return;
  paused_ = static_cast<uint8_t>(paused_ | 1u << priority);
  since_[priority] = now;
  ++counters_.priorities[priority].pauses_received;
  if (environment_.observer != nullptr) environment_.observer->OnPaused(place_, priority, true);
}

void EgressPort::Resume(uint8_t priority) {
  if (!paused(priority)) return;
  paused_ = static_cast<uint8_t>(paused_ & ~(1u << priority));
  base::Duration& sum = counters_.priorities[priority].paused;
  sum = sum + (environment_.loop.Now() - since_[priority]);
  if (environment_.observer != nullptr) environment_.observer->OnPaused(place_, priority, false);
}

void EgressPort::ArmExpiry() {
  expiry_.Cancel();
  base::Time first;
  bool any = false;
  for (uint8_t i = 0; i < kPriorities; ++i) {
    if (!paused(i)) continue;
    first = any ? std::min(first, until_[i]) : until_[i];
    any = true;
  }
  if (any) expiry_ = environment_.loop.RunAt(first, [this] { OnExpiry(); });
}

void EgressPort::OnExpiry() {
  const base::Time now = environment_.loop.Now();
  PauseFrame over;
  for (uint8_t i = 0; i < kPriorities; ++i) {
    if (paused(i) && until_[i] <= now) over.enabled = static_cast<uint8_t>(over.enabled | 1u << i);
  }
  OnPause(over);
}

}  // namespace tokamak::sim

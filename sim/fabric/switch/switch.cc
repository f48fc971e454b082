#include "sim/fabric/switch/switch.h"

#include <utility>

namespace tokamak::sim {

Switch::Switch(Environment& environment, const SwitchOptions& options, uint32_t node, const base::Random& random)
    : environment_(environment),
      options_(options),
      node_(node),
      random_(random),
      buffer_(options.buffer, options.pfc),
      watchdog_(environment.loop, options.watchdog,
                [this](uint32_t port, uint8_t priority, bool storm) { OnStorm(port, priority, storm); }) {}

uint32_t Switch::AddPort(Link& out) {
  const uint32_t port = ports();
  ports_.push_back(std::make_unique<Port>(environment_, *this, out, Place{node_, port}, options_, random_.Fork(port)));
  buffer_.AddPort(out.parameters());
  watchdog_.AddPort(ports_.back()->egress);
  return port;
}

void Switch::Receive(Frame* frame, uint32_t port) {
  Port& ingress = *ports_[port];
  if (environment_.observer != nullptr) environment_.observer->OnReceive(ingress.egress.place(), *frame);
  if (frame->is_pause) {
    const PauseFrame pause = frame->pause;
    environment_.frames.Give(frame);
    ingress.egress.OnPause(pause);
    watchdog_.Watch(port);
    return;
  }
  PriorityCounters& counters = ingress.egress.own_counters().priorities[frame->priority];
  ++counters.received;
  counters.received_bytes += frame->wire_bytes;
  frame->ingress = static_cast<uint16_t>(port);
  const uint8_t priority = frame->priority;
  const uint32_t egress = routes_.Pick(frame->destination, frame->flow);
  if (egress == RouteTable::kNoPort) {
    Drop(frame, port, DropReason::kNoRoute);
  } else if (watchdog_.storm(egress, priority) && options_.watchdog.action == WatchdogOptions::Action::kDrop) {
    Drop(frame, egress, DropReason::kWatchdog);
  } else if (!buffer_.Take(port, egress, priority, frame->wire_bytes)) {
    Drop(frame, egress, buffer_.lossless(priority) ? DropReason::kHeadroom : DropReason::kBuffer);
  } else {
    Forward(frame, egress);
  }
  UpdatePause(port, priority);
}

void Switch::Forward(Frame* frame, uint32_t egress) {
  Port& out = *ports_[egress];
  Mark(frame, &out);
  out.egress.Enqueue(frame);
}

void Switch::Mark(Frame* frame, Port* egress) {
  const uint64_t queue = egress->egress.queue(frame->priority).bytes() + frame->wire_bytes;
  if (!frame->ecn_capable() || !egress->marker.Marks(queue)) return;
  frame->MarkCongestion();
  ++egress->egress.own_counters().priorities[frame->priority].marked;
  if (environment_.observer != nullptr) environment_.observer->OnMark(egress->egress.place(), *frame, queue);
}

void Switch::OnDequeue(uint32_t port, const Frame& frame) {
  buffer_.Release(frame.ingress, port, frame.priority, frame.wire_bytes);
  UpdatePause(frame.ingress, frame.priority);
}

void Switch::UpdatePause(uint32_t port, uint8_t priority) {
  if (!buffer_.lossless(priority)) return;
  Port& ingress = *ports_[port];
  const bool stop = !ingress.pauses.stopped(priority);
  if (!(stop ? buffer_.AboveXoff(port, priority) : buffer_.BelowXon(port, priority))) return;
  if (stop) ++ingress.egress.own_counters().priorities[priority].pauses_sent;
  if (environment_.observer != nullptr) environment_.observer->OnPauseSent(ingress.egress.place(), priority, stop);
  ingress.pauses.Stop(priority, stop);
}

void Switch::OnLinkChange(uint32_t port, bool up) {
  ports_[port]->egress.ForgetPauses();
  if (up) ports_[port]->pauses.SayAgain();
}

void Switch::OnStorm(uint32_t port, uint8_t priority, bool storm) {
  EgressPort& egress = ports_[port]->egress;
  if (storm) ++egress.own_counters().priorities[priority].storms;
  if (environment_.observer != nullptr) environment_.observer->OnWatchdog(egress.place(), priority, storm);
  if (options_.watchdog.action == WatchdogOptions::Action::kForward) return egress.Disregard(priority, storm);
  if (!storm) return;
  FrameQueue queue = egress.TakeQueue(priority);
  while (!queue.empty()) {
    Frame* frame = queue.Pop();
    OnDequeue(port, *frame);
    Drop(frame, port, DropReason::kWatchdog);
  }
}

void Switch::Drop(Frame* frame, uint32_t port, DropReason reason) {
  PortCounters& counters = ports_[port]->egress.own_counters();
  ++counters.priorities[frame->priority].dropped;
  ++counters.drops[static_cast<size_t>(reason)];
  if (environment_.observer != nullptr) {
    environment_.observer->OnDrop(ports_[port]->egress.place(), *frame, reason);
  }
  environment_.frames.Give(frame);
}

uint64_t Switch::queued() const {
  uint64_t sum = 0;
  for (const auto& port : ports_) sum += port->egress.frames_queued();
  return sum;
}

}  // namespace tokamak::sim

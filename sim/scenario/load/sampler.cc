#include "sim/scenario/load/sampler.h"

#include <algorithm>
#include <utility>

namespace tokamak::sim {

void Sampler::Start() {
  begin_ = loop_.Now();
  interval_ = settings_.interval;
  Arm();
}

void Sampler::Stop() {
  timer_.Cancel();
  if (samples_.empty() || samples_.back().time < loop_.Now() - begin_) Take();
}

void Sampler::Arm() {
  timer_ = loop_.RunAfter(interval_, [this] {
    Take();
    if (samples_.size() >= settings_.most_samples && samples_.size() % 2 == 0) Thin();
    Arm();
  });
}

void Sampler::Take() {
  Sample& sample = samples_.emplace_back();
  sample.time = loop_.Now() - begin_;
  sample.groups = traffic_.Groups();
  sample.ports.reserve(ports_.size());
  for (const FabricPort& port : ports_) {
    const PortCounters counters = port.egress->counters();
    const PriorityCounters& one = counters.priorities[priority_];
    sample.ports.push_back({port.egress->queue(priority_).bytes(), one.sent_bytes, one.paused});
  }
}

// Keeps every second: counters are totals; of queues the longer counts.
void Sampler::Thin() {
  for (size_t i = 0; i < samples_.size() / 2; ++i) {
    const Sample& dropped = samples_[2 * i];
    Sample& kept = samples_[2 * i + 1];
    for (size_t port = 0; port < kept.ports.size(); ++port) {
      kept.ports[port].queued = std::max(kept.ports[port].queued, dropped.ports[port].queued);
    }
    if (i != 2 * i + 1) samples_[i] = std::move(kept);
  }
  samples_.resize(samples_.size() / 2);
  interval_ = interval_ * 2;
}

}  // namespace tokamak::sim

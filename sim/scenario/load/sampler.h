// Sampler looks at the queues of a run, and at what its workloads send, at regular intervals.
//
// Nobody knows beforehand how long a run is: once there are too many samples every other one is
// dropped, and the time between them doubles. What it keeps of a queue is the most that was seen.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/event_loop.h"
#include "sim/scenario/fabric_ports.h"
#include "sim/scenario/load/traffic.h"
#include "sim/scenario/scenario.h"

namespace tokamak::sim {

class Sampler final {
 public:
  struct PortSample {
    uint64_t queued = 0;      // bytes, of the data's priority
    uint64_t sent_bytes = 0;  // so far, the same
    base::Duration paused;    // so far, the same
  };
  struct Sample {
    base::Duration time;  // since Start
    std::vector<PortSample> ports;
    std::vector<Traffic::GroupCounters> groups;
  };

  // All must outlive it. `priority` is the one to look at.
  Sampler(base::EventLoop& loop, const OutputSettings& settings, const std::vector<FabricPort>& ports, uint8_t priority,
          const Traffic& traffic)
      : loop_(loop), settings_(settings), ports_(ports), priority_(priority), traffic_(traffic) {}

  void Start();

  // The last sample, now.
  void Stop();

  const std::vector<Sample>& samples() const { return samples_; }
  uint8_t priority() const { return priority_; }

 private:
  void Arm();
  void Take();
  void Thin();

  base::EventLoop& loop_;
  const OutputSettings settings_;
  const std::vector<FabricPort>& ports_;
  const uint8_t priority_;
  const Traffic& traffic_;
  base::Time begin_;
  base::Duration interval_;
  std::vector<Sample> samples_;
  base::Timer timer_;
};

}  // namespace tokamak::sim

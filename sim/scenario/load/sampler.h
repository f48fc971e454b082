// Sampler reads the queues of a run, and the progress of its workloads, at regular intervals.
//
// Too many samples: every other one goes, the interval doubles, and the longer of two queues is
// kept.
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
    uint64_t sent_bytes = 0;  // of that priority
    base::Duration paused;    // of that priority
  };
  struct Sample {
    base::Duration time;  // since Start
    std::vector<PortSample> ports;
    std::vector<Traffic::GroupCounters> groups;
  };

  // Arguments must outlive it. `priority`: sampled.
  Sampler(base::EventLoop& loop, const OutputSettings& settings, const std::vector<FabricPort>& ports, uint8_t priority,
          const Traffic& traffic)
      : loop_(loop), settings_(settings), ports_(ports), priority_(priority), traffic_(traffic) {}

  void Start();

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

// Outcomes of probes, as tests need them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/cli/doctor/probe.h"

namespace tokamak::cli::doctor {

inline ProbeOutcome WellProbed() {
  ProbeOutcome probe;
  probe.steps = {"inspect", "open", "domain", "memory", "endpoint", "listen", "connect", "call of 64 B"};
  for (const PullStep& step : kPullSteps) probe.steps.emplace_back(step.name);
  probe.steps.emplace_back("close");
  probe.finished = true;
  probe.ports = {{1, 4096, 4096}};
  probe.address = "10.0.0.1";
  probe.active_mtu = 4096;
  probe.figures.connected_ns = 12'000'000;
  probe.figures.half_round_trip_ns = 9'000;
  probe.figures.rates = {{"eager", 50 << 20}, {"read", 100 << 20}, {"write", 200 << 20}};
  return probe;
}

// It went well up to this step.
inline ProbeOutcome FailedIn(const std::string& step, const absl::Status& status) {
  ProbeOutcome probe = WellProbed();
  probe.finished = false;
  probe.failure = status;
  const bool connected = std::find(probe.steps.begin(), probe.steps.end(), step) >
                         std::find(probe.steps.begin(), probe.steps.end(), "connect");
  if (!connected) probe.figures.connected_ns = 0;
  probe.steps.erase(std::find(probe.steps.begin(), probe.steps.end(), step) + 1, probe.steps.end());
  return probe;
}

inline ProbeOutcome HungIn(const std::string& step) {
  ProbeOutcome probe = FailedIn(step, absl::OkStatus());
  probe.hung = true;
  return probe;
}

}  // namespace tokamak::cli::doctor

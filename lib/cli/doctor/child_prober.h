// ChildProber runs each probe in a process of its own, which is ended when it takes too long.
#pragma once

#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/cli/doctor/probe.h"

namespace tokamak::cli::doctor {

struct ChildProberOptions {
  // The program that probes, to which --device and the rest are added: by default ours, as `tok
  // doctor --probe`.
  std::vector<std::string> program = {"/proc/self/exe", "doctor", "--probe"};
  base::Duration deadline = base::Seconds(40);  // for a whole probe; its own waits are shorter
  base::Duration grace = base::Seconds(3);      // for the kernel to end a process that was killed
};

class ChildProber final : public Prober {
 public:
  explicit ChildProber(ChildProberOptions options = {}) : options_(std::move(options)) {}

  ProbeOutcome Probe(const ProbeRequest& request) override;

 private:
  const ChildProberOptions options_;
};

}  // namespace tokamak::cli::doctor

// A probe uses a device for real: opens it, makes its objects, connects and pulls (pulls.h), step
// by step.
//
// A device may hang in a system call, out of reach of any deadline of ours, so probes run in a
// child process: RunProbe is the child's part, ProbeInChild the parent's. The child prints its
// outcome until then as a line of JSON before it takes a step. The last line is the outcome, and
// so also says where a child hung or died.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/cli/doctor/pulls.h"
#include "lib/daemon/devices/device.h"

namespace tokamak::cli::doctor {

// How devices are opened and connected, as by tokd's flags.
struct Opening {
  bool by_tcp = false;       // --cm tcp
  verbs::Address address{};  // with it: where peers reach this host
  daemon::FabricSettings fabric{};

  absl::StatusOr<std::unique_ptr<daemon::OpenedDevice>> Open(const std::string& device) const;
  // The flags of `fabric`, which tokd and tok doctor share: "--service-level 3"; empty: none.
  std::string FabricFlags() const;
};

struct ProbeRequest {
  std::string device;  // as for tokd --device
  Opening opening;
  verbs::Address peer{};  // where tok doctor --listen listens; unspecified: the device pulls from itself
};

// A port as libibverbs reports it.
struct ProbedPort {
  uint32_t number = 0;
  uint32_t active_mtu = 0;  // bytes
  uint32_t max_mtu = 0;
};

struct ProbeOutcome {
  std::vector<std::string> steps;  // begun, in order: the last is where it stopped
  bool finished = false;           // true if all steps were taken
  absl::Status failure;            // of the last step; OK when finished, or when it never returned
  bool hung = false;               // true if the last step, or the end after `failure`, never returned: it was killed
  bool stuck = false;              // true if not even that was possible: the kernel does not let go of it

  std::vector<ProbedPort> ports;
  std::string address;      // the device's, once it is open
  uint32_t active_mtu = 0;  // bytes, once it is open
  PullFigures figures;

  bool Reached(absl::string_view step) const;
  // The step that went wrong; empty when it finished.
  std::string FailedStep() const { return finished || steps.empty() ? "" : steps.back(); }
};

// The child's part; each line goes to `say` at once, without a line feed.
void RunProbe(const ProbeRequest& request, const PullPlan& plan, const std::function<void(const std::string&)>& say);

struct ChildProberOptions {
  // The program that probes, to which --device and the rest are added: by default ours, as `tok
  // doctor --probe`.
  std::vector<std::string> program = {"/proc/self/exe", "doctor", "--probe"};
  base::Duration deadline = base::Seconds(60);  // for a whole probe; its own waits are shorter
  base::Duration grace = base::Seconds(3);      // for the kernel to end a process that was killed
};

// Runs a probe in a process of its own, which is ended when it takes too long.
ProbeOutcome ProbeInChild(const ProbeRequest& request, const ChildProberOptions& options = {});

}  // namespace tokamak::cli::doctor

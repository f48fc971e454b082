// Doctor gathers a machine's facts, probes its RDMA devices and has the checks judge them: what
// `tok doctor` does before it prints.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/cli/doctor/probe.h"
#include "lib/cli/doctor/report.h"
#include "lib/cli/doctor/system_files.h"

namespace tokamak::cli::doctor {

struct DoctorSettings {
  std::vector<std::string> devices;      // as for tokd --device; empty: all RDMA devices that the kernel has
  uint64_t store = uint64_t{512} << 20;  // bytes, as for tokd --memory
  uint32_t peers = 0;                    // nodes that tokd will be connected with; 0: not asked
  verbs::Address peer{};                 // where a tok doctor --listen listens; unspecified: nowhere
  bool listens = false;                  // true if peers are to be waited for
  Opening opening;
};

using Prober = std::function<ProbeOutcome(const ProbeRequest&)>;

// kInvalidArgument: a device's name is none, or what is asked for does not go together; the text
// says what to do.
absl::StatusOr<Report> Examine(const DoctorSettings& settings, const SystemFiles& files, const Prober& probe);

}  // namespace tokamak::cli::doctor

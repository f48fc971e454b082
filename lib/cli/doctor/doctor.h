// Doctor gathers a machine's facts, probes its RDMA devices and has the checks judge them: what
// `tok doctor` does before it prints.
#pragma once

#include <cstdint>
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
  std::string peer;                      // the host of a tok doctor --listen; empty: none
  uint16_t peer_port = kPeerPort;
  bool listens = false;  // peers are to be waited for
  bool by_tcp = false;   // as ProbeRequest's
  verbs::Address address{};
  daemon::FabricSettings fabric{};
};

// Devices that are examined where none is named; the others are left out, and the report says so.
constexpr size_t kMaxDevices = 16;

// kInvalidArgument: a device's name is none, or what is asked for does not go together; the text
// says what to do.
absl::StatusOr<Report> Examine(const DoctorSettings& settings, const SystemFiles& files, Prober& prober);

// The MTU of the network device that carries `device`, in bytes; 0 where it is not known.
uint32_t NetdevMtuOf(const std::string& device, const SystemFiles& files);

}  // namespace tokamak::cli::doctor

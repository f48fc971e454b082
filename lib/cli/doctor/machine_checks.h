// Checks of a machine for RDMA: a table of pure functions from the machine's facts to a Finding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cli/doctor/finding.h"
#include "lib/cli/doctor/machine_facts.h"
#include "lib/cli/doctor/rdma_facts.h"

namespace tokamak::cli::doctor {

// Memory that a node locks beside the store: some 3 MiB for each busy connection, here for about
// twenty; and for each peer that is idle, connected both ways, the first windows
// (transport::EndpointOptions::first_slots).
constexpr uint64_t kLockedBuffers = 64 << 20;
constexpr uint64_t kLockedForIdlePeer = 2 * 4 * 16 * 1024;

// File descriptors of a daemon without peers: loops, devices and a few hundred programs.
constexpr uint64_t kOwnDescriptors = 256;

// Devices that are examined if none is named.
constexpr size_t kMaxDevices = 16;

// All that is known of a machine, and what it is to be fit for.
struct MachineCase {
  MachineFacts machine;
  std::vector<RdmaFacts> devices;
  uint64_t store = 0;              // bytes
  uint32_t peers = 0;              // nodes that tokd will be connected with; 0: not asked
  bool by_tcp = false;             // connections are made without rdma_cm (--cm tcp)
  std::vector<std::string> named;  // the RDMA devices that were asked about: "rxe0"
  size_t soft = 0;                 // the software NICs that were asked about

  // True if RDMA devices matter: some are named, or nothing is.
  bool rdma() const { return soft == 0 || !named.empty(); }
};

std::vector<Finding> CheckMachine(const MachineCase& known);

}  // namespace tokamak::cli::doctor

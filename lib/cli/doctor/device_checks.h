// Checks of one device, and of it with a peer: tables of pure functions from what is known of the
// device, with a probe, to a Finding.
//
// A probe goes through steps (probe.h), and each check judges its part of them. A check whose part
// was not reached is not applicable, so that the first failure is the one to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/doctor/finding.h"
#include "lib/cli/doctor/probe.h"
#include "lib/cli/doctor/rdma_facts.h"
#include "lib/cli/doctor/report.h"

namespace tokamak::cli::doctor {

// All that is known of a device when it is judged.
struct DeviceCase {
  std::string name;                   // "ibv:rxe0"
  std::string driver;                 // "rdma_rxe"; empty: not reported, or the software NIC
  std::optional<PortFacts> port;      // nullopt: the software NIC, or it has no such port
  std::string absent;                 // why it has no such port; empty: it has
  std::string others;                 // with that: the remedy
  std::optional<uint32_t> gid_index;  // asked for by name
  bool in_initial_network = true;
  bool in_container = false;
  bool by_tcp = false;  // connections are made as by tokd --cm tcp
  std::string peer;     // with which the probe pulled; empty: with itself
  ProbeOutcome probe;
};

// The table of the port's GIDs, with why each was chosen to be spoken from, or not.
std::vector<GidLine> GidTable(const DeviceCase& known);

std::vector<Finding> CheckDevice(const DeviceCase& known);
// The probe is with the peer.
std::vector<Finding> CheckPeer(const DeviceCase& known);

}  // namespace tokamak::cli::doctor

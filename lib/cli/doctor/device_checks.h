// Checks of one device: each is a pure function from the device's facts and a probe to a Finding.
//
// A probe goes through steps (probe.h), and each check judges its part of them. A check whose part
// was not reached is not applicable, so that the first failure is the one to read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/cli/doctor/finding.h"
#include "lib/cli/doctor/machine_facts.h"
#include "lib/cli/doctor/probe.h"
#include "lib/cli/doctor/rdma_facts.h"
#include "lib/cli/doctor/report.h"

namespace tokamak::cli::doctor {

// The facts beside the probe on which advice depends.
struct DeviceSituation {
  std::string name;    // "ibv:rxe0"
  std::string driver;  // "rdma_rxe"; empty: not told, or the software NIC
  bool in_initial_network = true;
  bool in_container = false;
  bool by_tcp = false;  // connections are made as by tokd --cm tcp
};

// Is the port up, and the network device below it?
Finding CheckLink(const PortFacts& port);

// The GID that is spoken from. `lines` gets the table, with why each entry was chosen or not.
// `index`: asked for by name. `by_tcp`: it need be no address that rdma_cm can use.
Finding CheckGid(const PortFacts& port, std::optional<uint32_t> index, bool by_tcp, std::vector<GidLine>& lines);

// Does the port's MTU fit what its network device carries? Packets that do not fit vanish without
// an error.
Finding CheckMtu(const PortFacts& port, const ProbeOutcome& self);

// Can it be opened, and everything be made on it? A device that cannot is a phantom: listed, but of
// no use.
Finding CheckUse(const DeviceSituation& situation, const ProbeOutcome& self);

// Does the device connect to itself, and do messages, WRITEs and READs pass?
Finding CheckConnection(const DeviceSituation& situation, const ProbeOutcome& self);
Finding CheckPingPong(const DeviceSituation& situation, const ProbeOutcome& self);

// The same with the doctor that listens on another host, `peer.peer`.
Finding CheckPeer(const std::string& host, const ProbeOutcome& peer);
Finding CheckPeerMtu(uint32_t netdev_mtu, const ProbeOutcome& peer);
Finding CheckPeerConnection(const DeviceSituation& situation, const ProbeOutcome& peer);
Finding CheckPeerPingPong(const DeviceSituation& situation, const ProbeOutcome& peer);

}  // namespace tokamak::cli::doctor

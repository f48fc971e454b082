// Topology is a drawing of a network: hosts, switches, and the cables between them. Nodes are
// numbered hosts first, then switches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/verbs/types.h"
#include "sim/fabric/link/link.h"
#include "sim/fabric/link/loss_model.h"
#include "sim/fabric/switch/switch.h"

namespace tokamak::sim {

struct Topology {
  // An address for each NIC.
  struct Host {
    std::string name;
    std::vector<verbs::Address> addresses;
  };

  struct SwitchNode {
    std::string name;
    SwitchOptions options;
  };

  // A host's port: the index of its address; a switch's ports: 0 and up without a gap.
  struct End {
    uint32_t node = 0;
    uint32_t port = 0;
  };

  struct Cable {
    std::array<End, 2> ends;
    LinkParameters parameters;
    std::array<LossOptions, 2> loss;  // of what ends[0] sends, and ends[1]
  };

  std::vector<Host> hosts;
  std::vector<SwitchNode> switches;
  std::vector<Cable> cables;

  uint32_t nodes() const { return static_cast<uint32_t>(hosts.size() + switches.size()); }
  bool is_host(uint32_t node) const { return node < hosts.size(); }
  const std::string& NameOf(uint32_t node) const;
  const SwitchNode& switch_at(uint32_t node) const { return switches[node - hosts.size()]; }
  uint32_t interfaces() const;  // of all hosts

  // kInvalidArgument names the mistake.
  absl::Status Check() const;
};

}  // namespace tokamak::sim

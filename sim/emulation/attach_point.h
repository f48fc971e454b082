// AttachPoint says where a host of the topology is outside, as written on the command line.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::sim {

struct AttachPoint {
  std::string host;       // in the topology
  std::string interface;  // of this machine
  std::string network;    // path of its network namespace; empty: this process's
  int descriptor = -1;    // in place of an interface: a socket whose datagrams are frames

  // Parses "host0=eth0", "host0=eth0@NETWORK", "host0=fd:7"; NETWORK: a name (`ip netns`), pid or
  // path. kInvalidArgument names the remedy.
  static absl::StatusOr<AttachPoint> Parse(absl::string_view text);
};

}  // namespace tokamak::sim

// The suite over real sockets, in a world of threads: software NICs on addresses that a profile
// chooses.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "tests/verbs/conformance/backend.h"

namespace tokamak::verbs::conformance {

struct SocketWorld {
  std::string device;  // how a NIC's name starts: "soft:udp@"
  soft::UdpFabricOptions fabric;
  std::function<std::string(int host)> ip;  // and UDP port; hosts 1, 2, 3 have NICs, 200 none
  std::function<absl::Status()> prepare = [] { return absl::OkStatus(); };  // kUnavailable skips the test
};

Profile MakeSocketProfile(const std::string& name, const SocketWorld& world);

}  // namespace tokamak::verbs::conformance

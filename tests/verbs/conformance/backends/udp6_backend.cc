// The suite over UDP sockets of IPv6, in a network of its own: elsewhere loopback has one address
// only.
#include "absl/strings/str_cat.h"
#include "tests/os/own_network.h"
#include "tests/verbs/conformance/backends/socket_backend.h"

namespace tokamak::verbs::conformance {
namespace {

absl::Status Prepare() {
  if (absl::Status s = tests::EnterOwnNetwork(); !s.ok()) return s;
  for (int host : {1, 2, 3}) {
    if (absl::Status s = tests::AddLoopbackIpv6(absl::StrCat("fd00::", host)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<Profile> Profiles() {
  SocketWorld world;
  world.device = "soft:udp@";
  world.ip = [](int host) { return absl::StrCat("[fd00::", host, "]"); };
  world.prepare = [] {
    static const absl::Status once = Prepare();
    return once;
  };
  return {MakeSocketProfile("udp6", world)};
}

}  // namespace tokamak::verbs::conformance

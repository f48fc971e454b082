// The suite over UDP sockets: software NICs on addresses of 127/8, and several on one address, each
// at a UDP port of its own.
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/verbs/conformance/backends/socket_backend.h"

namespace tokamak::verbs::conformance {

std::vector<Profile> Profiles() {
  SocketWorld world;
  world.device = "soft:udp@";
  // Test processes that run side by side have different addresses, also where they share a network
  // namespace.
  const auto ip = [](int host) {
    const int process = getpid();
    return absl::StrCat("127.", 1 + process / 250 % 250, ".", process % 250, ".", host);
  };
  world.ip = ip;
  SocketWorld ports = world;
  ports.ip = [ip](int host) { return absl::StrCat(ip(1), ":", 4800 + host); };
  return {MakeSocketProfile("udp", world), MakeSocketProfile("udp_ports", ports)};
}

}  // namespace tokamak::verbs::conformance

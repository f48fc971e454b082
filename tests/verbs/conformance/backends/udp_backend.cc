// The suite over UDP sockets: software NICs on addresses of 127/8.
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "tests/verbs/conformance/backends/socket_backend.h"

namespace tokamak::verbs::conformance {

std::vector<Profile> Profiles() {
  SocketWorld world;
  world.device = "soft:udp@";
  // Test processes that run side by side have different addresses, also where they share a network namespace.
  world.ip = [](int host) {
    const int process = getpid();
    return absl::StrCat("127.", 1 + process / 250 % 250, ".", process % 250, ".", host);
  };
  return {MakeSocketProfile("udp", world)};
}

}  // namespace tokamak::verbs::conformance

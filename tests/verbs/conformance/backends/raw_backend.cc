// The suite over raw sockets, in a network of its own, where they are allowed.
#include "absl/strings/str_cat.h"
#include "tests/os/own_network.h"
#include "tests/verbs/conformance/backends/socket_backend.h"

namespace tokamak::verbs::conformance {

std::vector<Profile> Profiles() {
  SocketWorld world;
  world.device = "soft:raw@";
  world.fabric.raw = true;
  world.ip = [](int host) { return absl::StrCat("127.0.0.", host); };
  world.prepare = [] {
    static const absl::Status once = tests::EnterOwnNetwork();
    return once;
  };
  return {MakeSocketProfile("raw", world)};
}

}  // namespace tokamak::verbs::conformance

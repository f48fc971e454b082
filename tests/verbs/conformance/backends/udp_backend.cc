// The suite over real sockets: software NICs on addresses of 127/8.
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/udp/udp_fabric.h"
#include "tests/verbs/conformance/backends/threads_backend.h"

namespace tokamak::verbs::conformance {
namespace {

class UdpBackend final : public ThreadsBackend {
 public:
  absl::Status Open() {
    for (int host : {1, 2, 3}) {
      const auto make_fabric = [](os::EpollLoop& loop) { return std::make_unique<soft::UdpFabric>(loop); };
      const Address address = AddressOf(host);
      if (absl::Status s = AddNic(absl::StrCat("soft:udp@", address.ToString()), address, make_fabric); !s.ok())
        return s;
    }
    return absl::OkStatus();
  }

  Address nowhere() const override { return AddressOf(200); }

 private:
  // Test processes that run side by side have different addresses, also where they share a network namespace.
  static Address AddressOf(int host) {
    const int process = getpid();
    return *Address::Parse(absl::StrCat("127.", 1 + process / 250 % 250, ".", process % 250, ".", host));
  }
};

}  // namespace

std::vector<Profile> Profiles() {
  Profile udp;
  udp.name = "udp";
  udp.make = []() -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto backend = std::make_unique<UdpBackend>();
    if (absl::Status s = backend->Open(); !s.ok()) return s;
    return backend;
  };
  return {udp};
}

}  // namespace tokamak::verbs::conformance

#include "tests/verbs/conformance/backends/socket_backend.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verbs/conformance/backends/threads_backend.h"

namespace tokamak::verbs::conformance {
namespace {

class SocketBackend final : public ThreadsBackend {
 public:
  explicit SocketBackend(const SocketWorld& world) : world_(world) {}

  absl::Status Open() {
    for (int host : {1, 2, 3}) {
      const auto make_fabric = [this](os::EpollLoop& loop) {
        return std::make_unique<soft::UdpFabric>(loop, world_.fabric);
      };
      const Address address = AddressOf(host);
      if (absl::Status s = AddNic(absl::StrCat(world_.device, address.ToString()), address, make_fabric); !s.ok()) {
        return s;
      }
    }
    return absl::OkStatus();
  }

  Address nowhere() const override { return soft::FromFabricAddress(AddressOf(200)); }

 private:
  Address AddressOf(int host) const { return *Address::Parse(world_.ip(host)); }

  const SocketWorld world_;
};

}  // namespace

Profile MakeSocketProfile(const std::string& name, const SocketWorld& world) {
  Profile profile;
  profile.name = name;
  profile.make = [world]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    if (absl::Status s = world.prepare(); !s.ok()) return s;
    auto backend = std::make_unique<SocketBackend>(world);
    if (absl::Status s = backend->Open(); !s.ok()) return s;
    return backend;
  };
  return profile;
}

}  // namespace tokamak::verbs::conformance

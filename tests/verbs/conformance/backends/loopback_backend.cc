// The suite within one process and without a network: what a software NIC promises between its own
// thread and its owner's.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sim/network/loopback_fabric.h"
#include "tests/verbs/conformance/backends/threads_backend.h"

namespace tokamak::verbs::conformance {
namespace {

// Each NIC has a Fabric to itself (see ThreadsBackend); these lead to the one that joins them.
class Shared final : public soft::Fabric {
 public:
  explicit Shared(soft::Fabric& fabric) : fabric_(fabric) {}
  absl::StatusOr<std::unique_ptr<soft::Port>> Open(base::EventLoop& loop, const Address& address,
                                                   soft::PortCallbacks callbacks) override {
    return fabric_.Open(loop, address, std::move(callbacks));
  }

 private:
  soft::Fabric& fabric_;
};

class LoopbackBackend final : public ThreadsBackend {
 public:
  absl::Status Open() {
    for (int host : {1, 2, 3}) {
      const auto make_fabric = [this](os::EpollLoop&) { return std::make_unique<Shared>(joined_); };
      if (absl::Status s = AddNic("soft:loopback", AddressOf(host), make_fabric); !s.ok()) return s;
    }
    return absl::OkStatus();
  }

  Address nowhere() const override { return AddressOf(200); }

 private:
  static Address AddressOf(int host) { return *Address::Parse(absl::StrCat("10.0.0.", host)); }

  sim::LoopbackFabric joined_;  // may go before its ports
};

}  // namespace

std::vector<Profile> Profiles() {
  Profile loopback;
  loopback.name = "loopback";
  loopback.make = []() -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto backend = std::make_unique<LoopbackBackend>();
    if (absl::Status s = backend->Open(); !s.ok()) return s;
    return backend;
  };
  return {loopback};
}

}  // namespace tokamak::verbs::conformance

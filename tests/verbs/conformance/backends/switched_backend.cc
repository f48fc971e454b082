// The suite behind a switch: three software NICs on a simulated RoCE network with PFC and ECN, on
// its loop or on loops of their own; one that loses packets; and one so slow that ports are always
// busy.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/verbs/soft/device.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/generators.h"
#include "sim/time/sim_loop.h"
#include "tests/verbs/conformance/backends/scheduled_backend.h"

namespace tokamak::verbs::conformance {
namespace {

constexpr uint32_t kDevices = 3;

struct Network {
  sim::Rate rate = sim::Rate::Gigabits(100);
  sim::LossOptions loss;
  bool own_loops = false;
  soft::CongestionControl congestion = soft::CongestionControl::kAdditive;
};

class SwitchedBackend final : public ScheduledBackend {
 public:
  explicit SwitchedBackend(const Network& network) : network_(network), wire_loop_(scheduler()) {}
  ~SwitchedBackend() override { DropNodes(); }

  absl::Status Open() {
    sim::GeneratorOptions options;
    options.host.rate = network_.rate;
    options.switches.ecn = {50'000, 200'000, 0.2};
    sim::Topology topology = sim::Star(options, kDevices);
    for (sim::Topology::Cable& cable : topology.cables) cable.loss = {network_.loss, network_.loss};
    auto fabric = sim::SwitchedFabric::Build(wire_loop_, topology, {}, nullptr);
    if (!fabric.ok()) return fabric.status();
    fabric_ = *std::move(fabric);
    for (uint32_t i = 0; i < kDevices; ++i) {
      soft::DeviceOptions device_options;
      device_options.name = absl::StrCat("soft:switched", i);
      device_options.address = topology.hosts[i].addresses[0];
      device_options.seed = i;
      device_options.trace_node = i;
      device_options.congestion = network_.congestion;
      absl::Status added = Add(*fabric_, device_options, network_.own_loops ? nullptr : &wire_loop_);
      if (!added.ok()) return added;
    }
    return absl::OkStatus();
  }

  Address nowhere() const override { return *Address::Parse("10.0.0.200"); }

  bool Vanish(size_t index) override {
    fabric_->SetCableUp(static_cast<uint32_t>(index), false);
    return true;
  }

 private:
  const Network network_;
  sim::SimLoop wire_loop_;
  std::unique_ptr<sim::SwitchedFabric> fabric_;
};

Profile Make(std::string name, const Network& network) {
  Profile profile;
  profile.name = std::move(name);
  profile.lossy = network.loss.any();
  profile.make = [network]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto backend = std::make_unique<SwitchedBackend>(network);
    if (absl::Status status = backend->Open(); !status.ok()) return status;
    return backend;
  };
  return profile;
}

}  // namespace

std::vector<Profile> Profiles() {
  Network own_loops;
  own_loops.own_loops = true;
  Network dcqcn;
  dcqcn.congestion = soft::CongestionControl::kDcqcn;
  Network slow;
  slow.rate = sim::Rate::Gigabits(1);
  Network lossy;
  lossy.loss.rate = 0.01;
  lossy.loss.corrupt = 0.005;
  return {Make("clean", {}), Make("own_loops", own_loops), Make("dcqcn", dcqcn), Make("slow", slow),
          Make("lossy", lossy)};
}

}  // namespace tokamak::verbs::conformance

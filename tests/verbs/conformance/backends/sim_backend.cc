// The suite in virtual time: three software NICs on a simulated network, clean or as bad as its
// seed makes it.
//
// With TOKAMAK_SEEDS=N in the environment the networks are drawn instead, one for each of N seeds
// from TOKAMAK_FIRST_SEED (1) on: 0 to 20 % loss, reordering, duplication, damage, busy ports.
// ci/seeds runs many of them.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/device.h"
#include "sim/network/sim_fabric.h"
#include "sim/time/sim_loop.h"
#include "tests/verbs/conformance/backends/faulty_fabric.h"
#include "tests/verbs/conformance/backends/scheduled_backend.h"

namespace tokamak::verbs::conformance {
namespace {

constexpr size_t kDevices = 3;
constexpr uint64_t kFixedSeeds = 3;  // of each kind of bad network

struct Network {
  sim::LinkOptions link;
  double fair_loss = 0;  // see FaultyFabric
  bool busy = false;     // ports, at times
  uint64_t seed = 1;
};

class SimBackend final : public ScheduledBackend {
 public:
  explicit SimBackend(const Network& network)
      : wire_loop_(scheduler()),
        fabric_(wire_loop_, network.seed, FabricOptions(network), trace()),
        faulty_(fabric_, {network.fair_loss, network.busy, network.seed}) {}
  ~SimBackend() override { DropNodes(); }

  absl::Status Open(uint64_t seed) {
    for (size_t i = 0; i < kDevices; ++i) {
      soft::DeviceOptions options;
      options.name = absl::StrCat("soft:sim", i);
      options.address = AddressOf(i);
      options.seed = seed * kDevices + i;
      options.trace_node = static_cast<uint32_t>(i);
      if (absl::Status added = Add(faulty_, options); !added.ok()) return added;
    }
    return absl::OkStatus();
  }

  Address nowhere() const override { return AddressOf(200); }

  bool Vanish(size_t index) override {
    faulty_.Vanish(index);
    return true;
  }

  std::string Counters() const override {
    const sim::SimFabricCounters& counters = fabric_.counters();
    std::string text =
        absl::StrCat("At ", scheduler().Now().picoseconds() / 1000000, " us: ", counters.sent, " packets sent, ",
                     counters.delivered, " delivered, ", counters.lost, " lost, ", counters.duplicated, " doubled, ",
                     counters.reordered, " reordered, ", counters.corrupted, " damaged, ",
                     counters.dropped_queue + counters.dropped_buffer + counters.dropped_nobody, " dropped. ");
    for (const auto& node : nodes()) {
      const soft::QueuePairCounters sum = node->device->counters().queue_pairs;
      absl::StrAppend(&text, node->device->name(), ": ", sum.packets_retransmitted, " again, ", sum.timeouts,
                      " time-outs. ");
    }
    return text;
  }

 private:
  static sim::SimFabricOptions FabricOptions(const Network& network) {
    sim::SimFabricOptions options;
    options.link = network.link;
    return options;
  }
  static Address AddressOf(size_t index) { return *Address::Parse(absl::StrCat("10.0.0.", index + 1)); }

  sim::SimLoop wire_loop_;
  sim::SimFabric fabric_;
  FaultyFabric faulty_;
};

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  uint64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

Profile Make(std::string name, const Network& network) {
  Profile profile;
  profile.name = std::move(name);
  profile.lossy = network.fair_loss > 0 || network.link.loss > 0;
  profile.make = [network]() -> absl::StatusOr<std::unique_ptr<Backend>> {
    auto backend = std::make_unique<SimBackend>(network);
    if (absl::Status status = backend->Open(network.seed); !status.ok()) return status;
    return backend;
  };
  return profile;
}

// As bad as a network may be and every promise still be kept: packets that chance alone may lose
// are rare, since a correct device gives up after enough losses in a row (see FaultyFabric).
Network Draw(uint64_t seed) {
  base::Random random(seed);
  Network network;
  network.seed = seed;
  network.link.picoseconds_per_byte = random.Chance(0.5) ? 80 : 800;  // 100 Gb/s, 10 Gb/s
  network.link.jitter = base::Nanoseconds(static_cast<int64_t>(random.Below(3000)));
  network.fair_loss = 0.2 * random.Fraction();
  network.link.duplicate = 0.2 * random.Fraction();
  network.link.reorder = 0.1 * random.Fraction();
  network.link.corrupt = 0.002 * random.Fraction();
  network.busy = random.Chance(0.5);
  return network;
}

}  // namespace

std::vector<Profile> Profiles() {
  std::vector<Profile> profiles;
  const uint64_t first_drawn = FromEnvironment("TOKAMAK_FIRST_SEED", 1);
  const uint64_t drawn = FromEnvironment("TOKAMAK_SEEDS", 0);
  for (uint64_t seed = first_drawn; seed < first_drawn + drawn; ++seed) {
    profiles.push_back(Make(absl::StrCat("seed", seed), Draw(seed)));
  }
  if (drawn > 0) return profiles;

  Network clean;
  clean.link.picoseconds_per_byte = 80;  // 100 Gb/s
  profiles.push_back(Make("clean", clean));

  Network busy = clean;
  busy.busy = true;
  profiles.push_back(Make("busy", busy));

  for (uint64_t seed = 1; seed <= kFixedSeeds; ++seed) {
    Network network = clean;
    network.seed = seed;
    network.link.jitter = base::Microseconds(1);
    network.link.duplicate = 0.02;
    network.link.reorder = 0.02;
    network.link.corrupt = 0.01;
    network.link.loss = 0.05;
    profiles.push_back(Make(absl::StrCat("loss5_seed", seed), network));

    network.link.loss = 0;
    network.link.corrupt = 0;
    network.fair_loss = 0.2;
    profiles.push_back(Make(absl::StrCat("loss20_seed", seed), network));

    network.fair_loss = 0;
    network.link.duplicate = 0.2;
    network.link.reorder = 0.1;
    network.busy = true;
    profiles.push_back(Make(absl::StrCat("disorder_seed", seed), network));
  }
  return profiles;
}

}  // namespace tokamak::verbs::conformance

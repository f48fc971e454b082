#include "sim/network/switched_network.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "sim/fabric/topology/topology_builder.h"

namespace tokamak::sim {
namespace {

constexpr uint64_t kFastest = 400'000'000'000;  // bits per second, without a bound
constexpr uint32_t kMostHosts = 250;            // addresses 10.0.RAIL.N

// Returns one with memory for what comes after a pause frame, over any cable.
SwitchOptions RoomySwitch(uint32_t ports, const LinkParameters& cable) {
  constexpr uint64_t kBesides = 1 << 20;  // of each port and priority
  const double on_cables = cable.delay.seconds() * 2 * static_cast<double>(cable.rate.bits_per_second()) / 8;
  SwitchOptions options;
  options.buffer.bytes += 2 * ports * (static_cast<uint64_t>(on_cables) + kBesides);
  return options;
}

Topology Star(const NetworkOptions& options) {
  CHECK_LE(options.hosts, kMostHosts);
  const int64_t byte = options.link.picoseconds_per_byte;
  LinkParameters cable;
  cable.rate = Rate::BitsPerSecond(byte == 0 ? kFastest : 8'000'000'000'000 / static_cast<uint64_t>(byte));
  cable.delay = base::Duration::Picoseconds(options.link.latency.picoseconds() / 2);
  TopologyBuilder builder;
  for (uint32_t host = 0; host < options.hosts; ++host) {
    std::vector<verbs::Address> addresses;
    for (uint32_t rail = 0; rail < options.rails; ++rail) {
      addresses.push_back(*verbs::Address::Parse(absl::StrCat("10.0.", rail, ".", host + 1)));
    }
    builder.AddHost(absl::StrCat("host", host), std::move(addresses));
  }
  for (uint32_t rail = 0; rail < options.rails; ++rail) {
    builder.AddSwitch(absl::StrCat("switch", rail), RoomySwitch(options.hosts, cable));
  }
  for (uint32_t host = 0; host < options.hosts; ++host) {
    for (uint32_t rail = 0; rail < options.rails; ++rail) builder.Connect(host, options.hosts + rail, cable);
  }
  return builder.topology();
}

std::unique_ptr<SwitchedFabric> BuildStar(base::EventLoop& loop, const NetworkOptions& options) {
  FabricOptions fabric;
  fabric.seed = options.seed;
  auto built = SwitchedFabric::Build(loop, Star(options), fabric, /*observer=*/nullptr);
  CHECK(built.ok()) << built.status();
  return *std::move(built);
}

}  // namespace

SwitchedNetwork::SwitchedNetwork(std::unique_ptr<VirtualTime> time, const NetworkOptions& options)
    : time_(std::move(time)), loop_(time_->MakeLoop()), switched_(BuildStar(*loop_, options)), cuts_(*switched_) {
  SetAllLinks(options.link);
}

// Losses are on the way from the switch: each packet is at risk once.
void SwitchedNetwork::SetAllLinks(const LinkOptions& options) {
  LossOptions loss;
  loss.rate = options.loss;
  loss.corrupt = options.corrupt;
  for (uint32_t cable = 0; cable < switched_->links(); ++cable) switched_->SetLoss(cable, 1, loss);
}

void SwitchedNetwork::SetLink(const verbs::Address& from, const verbs::Address& to, const LinkOptions&) {
  CHECK(false) << "the way from " << from.ToString() << " to " << to.ToString() << " shares its cables with others";
}

}  // namespace tokamak::sim

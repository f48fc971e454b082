#include "sim/fabric/switched_fabric.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "sim/fabric/topology/routes.h"

namespace tokamak::sim {
namespace {

enum Stream : uint64_t { kRouteStream, kSwitchStream, kLossStream };

}  // namespace

absl::StatusOr<std::unique_ptr<SwitchedFabric>> SwitchedFabric::Build(base::EventLoop& loop, const Topology& topology,
                                                                      const FabricOptions& options,
                                                                      Observer* observer) {
  if (absl::Status s = topology.Check(); !s.ok()) return s;
  std::unique_ptr<SwitchedFabric> fabric(new SwitchedFabric(loop, topology, options, observer));
  if (absl::Status s = fabric->Assemble(); !s.ok()) return s;
  return fabric;
}

SwitchedFabric::SwitchedFabric(base::EventLoop& loop, const Topology& topology, const FabricOptions& options,
                               Observer* observer)
    : topology_(topology),
      options_(options),
      random_(options.seed),
      environment_{loop, frames_, observer},
      up_(topology.cables.size(), true) {}

SwitchedFabric::~SwitchedFabric() = default;

absl::Status SwitchedFabric::Assemble() {
  MakeLinks();
  // The links that leave by each port and arrive there.
  std::map<std::pair<uint32_t, uint32_t>, std::pair<Link*, Link*>> ports;
  for (size_t i = 0; i < topology_.cables.size(); ++i) {
    for (size_t end = 0; end < 2; ++end) {
      const Topology::End& here = topology_.cables[i].ends[end];
      ports[{here.node, here.port}] = {links_[i][end].get(), links_[i][1 - end].get()};
    }
  }
  for (uint32_t node = 0; node < topology_.hosts.size(); ++node) {
    for (const verbs::Address& address : topology_.hosts[node].addresses) CHECK(addresses_.Add(address));
  }
  const base::Random switch_random = random_.Fork(kSwitchStream);
  for (uint32_t i = 0; i < topology_.switches.size(); ++i) {
    const auto node = static_cast<uint32_t>(topology_.hosts.size()) + i;
    switches_.push_back(
        std::make_unique<Switch>(environment_, topology_.switches[i].options, node, switch_random.Fork(i)));
  }
  for (const auto& [place, links] : ports) {  // by node, then by port
    const auto& [node, port] = place;
    const auto& [out, in] = links;
    if (topology_.is_host(node)) {
      interfaces_.push_back(std::make_unique<HostInterface>(environment_, options_.interfaces, addresses_,
                                                            static_cast<uint32_t>(interfaces_.size()), *out,
                                                            Place{node, port}));
      in->Connect(*interfaces_.back(), port);
    } else {
      Switch& owner = *switches_[node - topology_.hosts.size()];
      CHECK_EQ(owner.AddPort(*out), port);
      in->Connect(owner, port);
    }
  }
  for (uint32_t i = 0; i < topology_.switches.size(); ++i) {
    if (absl::Status s = switches_[i]->Start(); !s.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("switch '", topology_.switches[i].name, "': ", s.message()));
    }
  }
  Reroute();
  return absl::OkStatus();
}

void SwitchedFabric::MakeLinks() {
  for (uint32_t i = 0; i < topology_.cables.size(); ++i) {
    const Topology::Cable& cable = topology_.cables[i];
    links_.emplace_back();
    for (uint32_t end = 0; end < 2; ++end) {
      const Place from{cable.ends[end].node, cable.ends[end].port};
      links_.back()[end] = std::make_unique<Link>(environment_, cable.parameters, from);
      SetLoss(i, end, cable.loss[end]);
    }
  }
}

absl::StatusOr<std::unique_ptr<verbs::soft::Port>> SwitchedFabric::Open(base::EventLoop& loop,
                                                                        const verbs::Address& address,
                                                                        verbs::soft::PortCallbacks callbacks) {
  const uint32_t number = addresses_.NumberOf(address);
  if (number == AddressBook::kUnknown) {
    return absl::NotFoundError(absl::StrCat("no host of this topology has the address ", address.ToString()));
  }
  return interfaces_[number]->Open(loop, address, std::move(callbacks));
}

void SwitchedFabric::SetCableUp(uint32_t cable, bool up) {
  if (up_[cable] == up) return;
  up_[cable] = up;
  for (size_t end = 0; end < 2; ++end) links_[cable][end]->SetUp(up);
  for (const Topology::End& end : topology_.cables[cable].ends) {
    if (topology_.is_host(end.node)) {
      const verbs::Address& address = topology_.hosts[end.node].addresses[end.port];
      interfaces_[addresses_.NumberOf(address)]->OnLinkChange();
    } else {
      switches_[end.node - topology_.hosts.size()]->OnLinkChange(end.port, up);
    }
  }
  if (options_.reroute_delay == base::Duration()) return Reroute();
  reroute_ = environment_.loop.RunAfter(options_.reroute_delay, [this] { Reroute(); });
}

void SwitchedFabric::SetLoss(uint32_t cable, uint32_t end, const LossOptions& options) {
  links_[cable][end]->SetLoss(options, random_.Fork(kLossStream).Fork(2 * uint64_t{cable} + end));
}

void SwitchedFabric::Reroute() {
  std::vector<RouteTable> tables = FindRoutes(topology_, up_, random_.Fork(kRouteStream));
  for (size_t i = 0; i < tables.size(); ++i) switches_[i]->SetRoutes(std::move(tables[i]));
}

}  // namespace tokamak::sim

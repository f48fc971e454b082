#include "sim/fabric/topology/topology_builder.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::sim {

verbs::Address AddressOfInterface(uint32_t number) {
  const uint32_t last = number + 1;
  verbs::Address address;
  address.ip[10] = address.ip[11] = 0xff;
  address.ip[12] = 10;
  address.ip[13] = static_cast<uint8_t>(last >> 16);
  address.ip[14] = static_cast<uint8_t>(last >> 8);
  address.ip[15] = static_cast<uint8_t>(last);
  return address;
}

uint32_t TopologyBuilder::AddHost(std::string name, uint32_t interfaces) {
  std::vector<verbs::Address> addresses;
  for (uint32_t i = 0; i < interfaces; ++i) addresses.push_back(AddressOfInterface(interfaces_ + i));
  return AddHost(std::move(name), std::move(addresses));
}

uint32_t TopologyBuilder::AddHost(std::string name, std::vector<verbs::Address> addresses) {
  CHECK(topology_.switches.empty()) << "hosts are numbered before switches";
  interfaces_ += static_cast<uint32_t>(addresses.size());
  topology_.hosts.push_back({std::move(name), std::move(addresses)});
  next_port_.push_back(0);
  return topology_.nodes() - 1;
}

uint32_t TopologyBuilder::AddSwitch(std::string name, const SwitchOptions& options) {
  topology_.switches.push_back({std::move(name), options});
  next_port_.push_back(0);
  return topology_.nodes() - 1;
}

void TopologyBuilder::Connect(uint32_t a, uint32_t b, const LinkParameters& parameters) {
  Topology::Cable cable;
  cable.ends = {NextPort(a), NextPort(b)};
  cable.parameters = parameters;
  Connect(std::move(cable));
}

void TopologyBuilder::Connect(Topology::Cable cable) {
  for (const Topology::End& end : cable.ends) {
    next_port_[end.node] = std::max(next_port_[end.node], end.port + 1);
  }
  topology_.cables.push_back(std::move(cable));
}

}  // namespace tokamak::sim

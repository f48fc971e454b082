#include "lib/cli/places.h"

#include "absl/strings/str_cat.h"
#include "lib/daemon/device.h"

namespace tokamak::cli {

namespace {

absl::StatusOr<NodePlace> SoftwareNic(const Places& places, uint32_t node) {
  const std::string ip = absl::StrCat("127.0.0.", node);
  auto listen = verbs::Address::Parse(ip);
  if (!listen.ok()) return listen.status();
  listen->port = places.port;
  return NodePlace{absl::StrCat("soft:udp@", ip, ":", places.udp_port), *listen};
}

}  // namespace

absl::StatusOr<std::vector<NodePlace>> PlaceNodes(const Places& places, uint32_t nodes) {
  std::vector<NodePlace> placed;
  if (places.devices.empty()) {
    for (uint32_t node = 1; node <= nodes; ++node) {
      auto place = SoftwareNic(places, node);
      if (!place.ok()) return place.status();
      placed.push_back(*std::move(place));
    }
    return placed;
  }
  std::vector<verbs::Address> addresses;
  for (const std::string& name : places.devices) {
    const auto device = daemon::OpenDevice(name, {});
    if (!device.ok()) return device.status();
    addresses.push_back((*device)->device().address());
  }
  for (uint32_t i = 0; i < nodes; ++i) {
    const size_t device = i % addresses.size();
    const uint64_t port = places.port + i / addresses.size() * kPortsPerNode;
    if (port > UINT16_MAX)
      return absl::InvalidArgumentError("the ports above --port do not suffice: choose a lower one");
    placed.push_back({places.devices[device], addresses[device]});
    placed.back().listen.port = static_cast<uint16_t>(port);
  }
  return placed;
}

}  // namespace tokamak::cli

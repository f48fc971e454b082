#include "lib/cli/cluster/places.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::cli {

namespace {

constexpr uint32_t kNetworksTried = 250;

// True if free now; takes it for a moment.
bool IsFree(const std::string& ip, uint32_t port) {
  const os::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  return inet_pton(AF_INET, ip.c_str(), &address.sin_addr) == 1 &&
         bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::string IpOf(const std::string& network, uint32_t node) { return absl::StrCat(network, ".", node); }

absl::StatusOr<NodePlace> SoftwareNic(const Places& places, uint32_t node) {
  const std::string ip = IpOf(places.network, node);
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

absl::StatusOr<std::string> FreeNetwork(const Places& places, uint32_t nodes) {
  for (uint32_t tried = 0; tried <= kNetworksTried; ++tried) {
    const std::string network = tried == 0 ? places.network : absl::StrCat("127.", 1 + getuid() % 250, ".", tried);
    bool free = true;
    for (uint32_t node = 1; free && node <= nodes; ++node) {
      const std::string ip = IpOf(network, node);
      free = IsFree(ip, places.udp_port) && (places.udp_port == UINT16_MAX || IsFree(ip, places.udp_port + 1u));
    }
    if (free) return network;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("the UDP ports ", places.udp_port, " and ", places.udp_port + 1, " of ", kNetworksTried,
                   " loopback networks are taken: end what has them, or give another --udp-port"));
}

}  // namespace tokamak::cli

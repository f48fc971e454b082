// Places of the nodes of a cluster on one machine: the device and the address of each.
//
// Without devices node I has the software NIC soft:udp@NETWORK.I, where NETWORK is 127.0.0 unless
// taken: so two users, or one twice, can have a cluster each. With devices, e.g. ibv:rxe0 and
// ibv:rxe1, the nodes take them in turn and listen at their addresses, kPortsPerNode ports apart on
// one device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/types.h"

namespace tokamak::cli {

// Ports of one tokd: one for each of its engines.
constexpr uint16_t kPortsPerNode = 16;

struct NodePlace {
  std::string device;              // as tokd --device takes it
  tokamak::verbs::Address listen;  // with its port
};

struct Places {
  std::vector<std::string> devices;  // empty: the software NIC
  std::string network = "127.0.0";   // of the software NICs: FreeNetwork finds one
  uint16_t port = 7000;              // of the first node on each device
  uint16_t udp_port = 4791;          // of the software NICs; bulk has the next one
};

// Returns the places of nodes 1 to `nodes`. Opens each device for a moment, to learn its address;
// errors as in opening it. kInvalidArgument: the ports do not suffice.
absl::StatusOr<std::vector<NodePlace>> PlaceNodes(const Places& places, uint32_t nodes);

// Returns 127.0.0, or another loopback network on which the software NICs of all nodes have both
// their UDP ports free now. Each user's search begins elsewhere, so that users do not collide.
// kResourceExhausted: none of the searched ones.
absl::StatusOr<std::string> FreeNetwork(const Places& places, uint32_t nodes);

}  // namespace tokamak::cli

// Where the nodes of a cluster on one machine are: the device of each, and the address that it
// listens on.
//
// Without devices node I has the software NIC soft:udp@NETWORK.I, NETWORK being 127.0.0 unless that
// is taken: so that two users, or one twice, can have a cluster each. With devices, say ibv:rxe0
// and ibv:rxe1, the nodes take them in turn; each listens at its device's address, and those that
// share a device are kPortsPerNode ports apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/types.h"

namespace tokamak::cli {

// A tokd takes a port for each of its engines.
constexpr uint16_t kPortsPerNode = 16;

struct NodePlace {
  std::string device;              // as tokd --device takes it
  tokamak::verbs::Address listen;  // with its port
};

struct Places {
  std::vector<std::string> devices;  // empty: the software NIC
  std::string network = "127.0.0";   // of these: FreeNetwork finds one
  uint16_t port = 7000;              // of the first node on each device
  uint16_t udp_port = 4791;          // of the software NICs, where no devices are named; bulk has the next one
};

// The places of nodes 1 to `nodes`. Opens each device for a moment, to learn its address: an error
// is that of opening it. kInvalidArgument: the ports do not suffice.
absl::StatusOr<std::vector<NodePlace>> PlaceNodes(const Places& places, uint32_t nodes);

// 127.0.0, or another loopback network on which the software NICs of all nodes have both their UDP
// ports free now. Users begin elsewhere, so that they are not in each other's way.
// kResourceExhausted: none of those that were looked at.
absl::StatusOr<std::string> FreeNetwork(const Places& places, uint32_t nodes);

}  // namespace tokamak::cli

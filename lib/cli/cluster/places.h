// Places of the nodes of a cluster on one machine: the device and the address of each.
//
// Without devices node I has soft:udp@NETWORK.I, with NETWORK 127.0.0 unless taken by another
// cluster. Given devices, e.g. ibv:rxe0 and ibv:rxe1, are taken in turn, nodes of one kPortsPerNode
// ports apart.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/verbs/types.h"

namespace tokamak::cli {

// One for each engine of a tokd.
constexpr uint16_t kPortsPerNode = 16;

struct NodePlace {
  std::string device;  // as in tokd --device
  tokamak::verbs::Address listen;
};

struct Places {
  std::vector<std::string> devices;  // empty: the software NIC
  std::string network = "127.0.0";   // of the software NICs; see FreeNetwork
  uint16_t port = 7000;              // of the first node on each device
  uint16_t udp_port = 4791;          // of the software NICs; bulk has the next
};

// Places nodes 1 to `nodes`. Opens each device for a moment, for its address; errors as in opening
// it. kInvalidArgument: too few ports.
absl::StatusOr<std::vector<NodePlace>> PlaceNodes(const Places& places, uint32_t nodes);

// Returns 127.0.0, or another loopback network where all nodes' UDP ports, two each, are free now.
// Searches begin apart for each user. kResourceExhausted: none found.
absl::StatusOr<std::string> FreeNetwork(const Places& places, uint32_t nodes);

}  // namespace tokamak::cli

// ManBetween is somebody on the path to a node: he changes what its connection manager and its
// peers say to each other while they connect.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/verbs/verbs.h"

namespace tokamak::transport::testing {

// Empty changes leave things as they are.
struct ManBetween {
  std::function<void(std::vector<uint8_t>&)> asked;     // the private data of who connects
  std::function<void(std::vector<uint8_t>&)> answered;  // and of the answer
  std::function<void(verbs::Address&)> peer;            // who connects, as the node sees it
  std::function<void(uint32_t&)> number;                // of the peer's queue pair
  std::function<void(verbs::Address&)> service;         // whom the node's own request reaches
};

// `man` outlives the device.
std::unique_ptr<verbs::Device> WithManBetween(std::unique_ptr<verbs::Device> device, const ManBetween& man);

}  // namespace tokamak::transport::testing

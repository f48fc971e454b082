// Worlds of nodes with several devices.
#pragma once

#include <cstdint>

#include "tests/transport/world.h"

namespace tokamak::transport::testing {

inline NodeOptions WithRails(uint32_t rails) {
  NodeOptions options;
  options.rails = rails;
  options.endpoint.chunk_size = 256 * 1024;
  options.endpoint.reliability.ack_timeout = base::Milliseconds(1);
  return options;
}

inline WorldOptions Fast(uint64_t seed = 1) {
  WorldOptions options;
  options.seed = seed;
  options.link = FastLink();
  return options;
}

// Both ways, only what the puller sends, or only what the owner sends: then notes arrive whose
// acknowledgements do not.
inline void CutSomehow(World& world, const Node& puller, const Node& owner, uint32_t rail, uint64_t how) {
  if (how != 1) world.network->Cut(puller.AddressOf(rail), owner.AddressOf(rail));
  if (how != 2) world.network->Cut(owner.AddressOf(rail), puller.AddressOf(rail));
}

}  // namespace tokamak::transport::testing

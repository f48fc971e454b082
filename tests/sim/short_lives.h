// Short lives of clusters on a switched network, in whatever virtual time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/network/switched_network.h"
#include "sim/worlds/world.h"

namespace tokamak::sim {

constexpr uint64_t kShortLives = 4;

// `Time` is the virtual time.
template <typename Time>
WorldOptions ShortLife(uint64_t seed) {
  WorldOptions options = WorldOptions::OfSeed(seed);
  options.steps = 60;
  options.network = [](const NetworkOptions& network, base::Trace&) {
    return std::make_unique<SwitchedNetwork>(std::make_unique<Time>(), network);
  };
  return options;
}

// Judges a life; returns its trace.
inline uint64_t Live(const WorldOptions& options) {
  World world(options);
  const std::vector<std::string> wrong = world.Run();
  for (const std::string& one : wrong) ADD_FAILURE() << "seed " << options.seed << ": " << one;
  EXPECT_GT(world.history().size(), 60u);
  return world.trace_hash();
}

}  // namespace tokamak::sim

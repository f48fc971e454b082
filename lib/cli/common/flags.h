// The flags common to all commands, as given.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::cli {

struct Flags {
  std::string socket;
  bool cluster_chosen = false;  // by --node or --state
  std::string state;
  uint32_t node = 1;
  bool json = false;
};

}  // namespace tokamak::cli

// The flags of every command, as the command line gave them. Further ones are the commands' own.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::cli {

struct Flags {
  std::string socket;
  bool cluster_chosen = false;  // by --node or --state
  std::string state;            // a folder
  uint32_t node = 1;
  bool json = false;
};

}  // namespace tokamak::cli

// NamedNumber is one number of a node or of its devices, with its public name.
#pragma once

#include <cstdint>
#include <string>

namespace tokamak::daemon {

struct NamedNumber {
  std::string name;  // unit last: store_used_bytes; _total: since the start
  uint64_t value = 0;
};

}  // namespace tokamak::daemon

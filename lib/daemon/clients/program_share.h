// ProgramShare is the resources in use by all connections of one program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/byte_budget.h"

namespace tokamak::daemon {

struct ProgramShare {
  // `most`: bytes; `user`: its user's budget.
  explicit ProgramShare(uint64_t most, base::ByteBudget* user = nullptr) : memory(most, user) {}

  base::ByteBudget memory;
  size_t waiting_ids = 0;  // in waiting requests
};

}  // namespace tokamak::daemon

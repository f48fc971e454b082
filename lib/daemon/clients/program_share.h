// ProgramShare is the resources in use by all connections of one program.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/byte_budget.h"

namespace tokamak::daemon {

struct ProgramShare {
  // `most`: bytes; `user`: the budget of its user, who may have several programs.
  explicit ProgramShare(uint64_t most, base::ByteBudget* user = nullptr) : memory(most, user) {}

  base::ByteBudget memory;
  size_t waiting_ids = 0;  // objects of waiting requests
};

}  // namespace tokamak::daemon

// ProgramShare is what all connections of one program have under way together.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/base/byte_budget.h"

namespace tokamak::daemon {

struct ProgramShare {
  // `most`: bytes; of `user`, who may have several programs.
  explicit ProgramShare(uint64_t most, base::ByteBudget* user = nullptr) : memory(most, user) {}

  base::ByteBudget memory;
  size_t waiting_ids = 0;  // objects that requests which wait are about
};

}  // namespace tokamak::daemon

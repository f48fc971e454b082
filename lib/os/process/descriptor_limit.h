// The number of descriptors that a program may have.
#pragma once

#include <cstdint>

namespace tokamak::os {

// Raises the soft limit (1,024 for most users, for programs that call select) to the hard one,
// which needs no right. Returns the new limit.
uint64_t RaiseDescriptorLimit();

}  // namespace tokamak::os

// SecretSeed draws the seed of a device or a machine that is on a real network.
#pragma once

#include <cstdint>

namespace tokamak::os {

// From the kernel's random numbers: processes that start at the same moment have different seeds,
// and nobody on the network can guess them. Ends the process where the kernel has none: nothing
// that can be guessed takes their place.
uint64_t SecretSeed();

}  // namespace tokamak::os

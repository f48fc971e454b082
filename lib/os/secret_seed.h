// SecretSeed draws the seed of a device or a machine on a real network.
#pragma once

#include <cstdint>

namespace tokamak::os {

// Draws from the kernel's random numbers, so that processes which start at the same moment have
// different seeds that nobody can guess. Ends the process if the kernel has none.
uint64_t SecretSeed();

}  // namespace tokamak::os

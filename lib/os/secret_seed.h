// SecretSeed draws the seed of a device or a machine on a real network.
#pragma once

#include <cstdint>

namespace tokamak::os {

// Draws from the kernel: different for processes started at once, and not to be guessed. Ends the
// process if the kernel has none.
uint64_t SecretSeed();

}  // namespace tokamak::os

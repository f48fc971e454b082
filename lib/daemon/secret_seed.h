// SecretSeed draws the seed of a device or a machine that is on a real network.
#pragma once

#include <cstdint>

namespace tokamak::daemon {

// From the kernel: of no other process, though they be started at one moment; and nobody on the network
// can guess it.
uint64_t SecretSeed();

}  // namespace tokamak::daemon

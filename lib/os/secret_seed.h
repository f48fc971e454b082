// Numbers that nobody can guess: the seed of a device or a machine on a real network, and bytes for
// keys.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace tokamak::os {

// Draws from the kernel's random numbers, so that processes which start at the same moment have
// different seeds that nobody can guess. Ends the process if the kernel has none.
uint64_t SecretSeed();

// The same, for bytes; from any thread.
void DrawSecretBytes(absl::Span<uint8_t> bytes);

}  // namespace tokamak::os

// Completion vectors: which of a device's interrupts wake which processors.
//
// A wake-up from an interrupt elsewhere crosses processors, perhaps NUMA nodes. So a queue takes a
// vector that interrupts where its loop runs, if the kernel shows it.
//
// Reads /proc and /sys; later moves by irqbalance are not seen.
#pragma once

#include <string>
#include <vector>

namespace tokamak::verbs::ibv {

// Returns the processors that each of the first `count` vectors of `device` ("mlx5_0") may
// interrupt, found by name ("mlx5_comp0@pci:..."): empty for a vector without one, no sets without
// any. `root` stands before /proc and /sys ("" except for tests).
std::vector<std::vector<int>> VectorProcessors(const std::string& root, const std::string& device, int count);

// Returns the vectors that may interrupt `allowed`, or all of the `count` if there are none. Never
// empty.
std::vector<int> VectorsFor(const std::vector<std::vector<int>>& processors, const std::vector<int>& allowed,
                            int count);

}  // namespace tokamak::verbs::ibv

// Completion vectors: which of a device's interrupts wake which processors.
//
// A completion wakes a loop by the interrupt of its queue's vector. If that interrupts another
// processor than the loop's, each wake-up crosses processors, perhaps NUMA nodes. So a queue takes
// a vector that interrupts where its loop runs, if the kernel shows which these are.
//
// Reads /proc and /sys; later moves by irqbalance are not seen.
#pragma once

#include <string>
#include <vector>

namespace tokamak::verbs::ibv {

// Returns the processors that each of the first `count` vectors of `device` ("mlx5_0") may
// interrupt, found by the interrupts' names ("mlx5_comp0@pci:..."). A vector without such a name
// has an empty set; if no interrupt has one, there are no sets. `root` stands before /proc and /sys
// ("" except for tests).
std::vector<std::vector<int>> VectorProcessors(const std::string& root, const std::string& device, int count);

// Returns the vectors that may interrupt `allowed`, or all of the `count` if there are none. Never
// empty.
std::vector<int> VectorsFor(const std::vector<std::vector<int>>& processors, const std::vector<int>& allowed,
                            int count);

}  // namespace tokamak::verbs::ibv

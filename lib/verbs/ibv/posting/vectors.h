// Completion vectors: which of a device's interrupts wake which processors.
//
// A completion wakes a loop by the interrupt of its queue's vector. An interrupt on a processor
// where the loop's thread does not run makes each wake-up cross to another, perhaps of another NUMA
// node. So a queue takes a vector whose interrupt goes where its loop runs, if the kernel shows
// which these are.
//
// Functions of the kernel's files in /proc and /sys. Later moves by irqbalance are not seen.
#pragma once

#include <string>
#include <vector>

namespace tokamak::verbs::ibv {

// Returns the processors that vector i of `device` ("mlx5_0") may interrupt, for the first `count`
// vectors; `root` stands before /proc and /sys ("" except for tests). Drivers name the interrupts
// of their vectors "mlx5_comp0@pci:..."; a vector without such a name has an empty set, and if no
// interrupt has one there are no sets.
std::vector<std::vector<int>> VectorProcessors(const std::string& root, const std::string& device, int count);

// Returns the vectors for a thread that runs on `allowed`: those whose interrupts may go there, or
// all of the `count` if there are none. Never empty.
std::vector<int> VectorsFor(const std::vector<std::vector<int>>& processors, const std::vector<int>& allowed,
                            int count);

}  // namespace tokamak::verbs::ibv

// Completion vectors: which of a device's interrupts wake which processors.
//
// A completion that wakes a loop does so by the interrupt of its queue's vector. Where that
// interrupt goes to a processor on which the loop's thread does not run, each wake-up crosses to
// another processor, perhaps of another NUMA node. So a queue takes a vector whose interrupt goes
// where its loop runs, as far as the kernel says which these are.
//
// Functions of what the kernel tells in /proc and /sys. What irqbalance moves later is not seen.
#pragma once

#include <string>
#include <vector>

namespace tokamak::verbs::ibv {

// The processors that vector i of `device` ("mlx5_0") may interrupt, for the first `count` vectors;
// `root` stands before /proc and /sys ("" but for tests). Drivers name the interrupts of their
// vectors "mlx5_comp0@pci:..."; empty sets where they do not, and no sets where no interrupt has
// such a name.
std::vector<std::vector<int>> VectorProcessors(const std::string& root, const std::string& device, int count);

// The vectors for a thread that runs on `allowed`: those whose interrupts may go there, or all of
// them where there are none such. `count` of them exist; never empty.
std::vector<int> VectorsFor(const std::vector<std::vector<int>>& processors, const std::vector<int>& allowed,
                            int count);

}  // namespace tokamak::verbs::ibv

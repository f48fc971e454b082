// StartThread starts a thread as all of ours are: named, so that top and gdb show its purpose, and
// deaf to Unix signals, which stay with the main thread.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace tokamak::os {

struct ThreadOptions {
  std::string name;                  // the kernel keeps the first 15 bytes
  std::vector<int> processors = {};  // runs on these only, or a warning gives the reason; none: any
};

// The caller joins it.
[[nodiscard]] std::thread StartThread(ThreadOptions options, std::function<void()> body);

}  // namespace tokamak::os

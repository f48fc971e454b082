// StartThread starts a thread as all of ours are: named, so that top and gdb show what it does, and
// deaf to Unix signals, which stay with the main thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

namespace tokamak::os {

struct ThreadOptions {
  std::string name;  // the kernel keeps the first 15 bytes
  int cpu = -1;      // runs on this processor only; -1 on any. One that does not exist is a warning.
};

// The caller joins it.
[[nodiscard]] std::thread StartThread(ThreadOptions options, std::function<void()> body);

}  // namespace tokamak::os

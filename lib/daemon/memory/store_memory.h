// Opens the store's memory: in huge pages if enough are free and no flag forbids it, with a line
// for the log that says which and why.
//
// Free huge pages may be unavailable when touched, if a control group bounds them: so the memory is
// touched first, and ordinary pages are the fallback.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/os/memory_limits.h"
#include "lib/os/shared_memory.h"

namespace tokamak::daemon {

enum class HugePagesChoice : uint8_t {
  kWhereFree,  // else ordinary ones
  kAlways,     // or fail
  kNever,
};

// Returns why ordinary pages are better for a store of `size` bytes with these free huge pages;
// empty: they are not. `touched`: at once.
std::string WhyOrdinaryPages(uint64_t size, const os::HugePages& pages, bool touched);

struct StoreMemory {
  os::SharedMemory memory;
  std::string pages;  // for the log: which and why
};

// Touches new memory; null: it is touched on use. kCancelled: the daemon shall not start.
using TouchMemory = std::function<absl::Status(const os::SharedMemory& memory)>;

// The system's calls; tests have their own.
struct MemorySystem {
  std::function<os::HugePages()> huge_pages = [] { return os::FreeHugePages(); };
  std::function<absl::StatusOr<os::SharedMemory>(uint64_t size, const os::SharedMemoryOptions& options)> create =
      [](uint64_t size, const os::SharedMemoryOptions& options) {
        return os::SharedMemory::Create("tokamak", size, options);
      };
};

// Errors as os::SharedMemory::Create, and as `touch`.
absl::StatusOr<StoreMemory> OpenStoreMemory(uint64_t size, HugePagesChoice choice, const TouchMemory& touch,
                                            const MemorySystem& system = {});

}  // namespace tokamak::daemon

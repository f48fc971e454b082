// Opens the store's memory: in huge pages if enough are free and no flag forbids it, with the
// reason for the log.
//
// A control group may deny free huge pages on touch: memory is touched first, with ordinary pages
// as the fallback.
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

// Returns why ordinary pages suit a store of `size` bytes; empty: they do not. `touched`: at once.
std::string WhyOrdinaryPages(uint64_t size, const os::HugePages& pages, bool touched);

struct StoreMemory {
  os::SharedMemory memory;
  std::string pages;  // for the log: which and why
};

// Touches new memory; null: on use. kCancelled: ends the start.
using TouchMemory = std::function<absl::Status(const os::SharedMemory& memory)>;

struct MemorySystem {
  std::function<os::HugePages()> huge_pages = [] { return os::FreeHugePages(); };
  std::function<absl::StatusOr<os::SharedMemory>(uint64_t size, const os::SharedMemoryOptions& options)> create =
      [](uint64_t size, const os::SharedMemoryOptions& options) {
        return os::SharedMemory::Create("tokamak", size, options);
      };
};

// Errors of os::SharedMemory::Create and `touch`.
absl::StatusOr<StoreMemory> OpenStoreMemory(uint64_t size, HugePagesChoice choice, const TouchMemory& touch,
                                            const MemorySystem& system = {});

}  // namespace tokamak::daemon

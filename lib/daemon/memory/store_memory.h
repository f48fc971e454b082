// The store's memory: in huge pages where enough of them are free, unless a flag says otherwise,
// and with a line for the log that says which and why.
//
// Huge pages that are free may be gone when they are touched, where a control group bounds them: so
// the memory is touched before they are settled on, and ordinary ones are taken instead.
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
  kWhereFree,  // ordinary ones else
  kAlways,     // or none at all
  kNever,
};

// Why a store of `size` bytes is better kept in ordinary pages where these are free; empty: it is
// not. `touched`: at once.
std::string WhyOrdinaryPages(uint64_t size, const os::HugePages& pages, bool touched);

struct StoreMemory {
  os::SharedMemory memory;
  std::string pages;  // for the log: which and why
};

// Touches new memory; empty: it is touched when it is used. kCancelled: the daemon is not to start.
using TouchMemory = std::function<absl::Status(const os::SharedMemory& memory)>;

// What the system gives; a test's own.
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

// The store's memory: in huge pages where enough of them are free, unless a flag says otherwise, and
// with a line for the log that says which and why.
#pragma once

#include <cstdint>
#include <string>

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
// not.
std::string WhyOrdinaryPages(uint64_t size, const os::HugePages& pages);

struct StoreMemory {
  os::SharedMemory memory;
  std::string pages;  // for the log: which and why
};

// Errors as os::SharedMemory::Create.
absl::StatusOr<StoreMemory> OpenStoreMemory(uint64_t size, HugePagesChoice choice);

}  // namespace tokamak::daemon

// Estimates the memory that this process can get, so that an impossible request is refused at once,
// with a reason, rather than end in SIGBUS or a kill in the middle of work.
//
// An estimate: others use memory too. If the kernel gives no bound, there is no limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::os {

struct MemoryLimit {
  uint64_t bytes = UINT64_MAX;
  std::string reason;  // where the limit comes from: "memory and swap that are free", say
};

// Returns the lowest of available memory and the control groups' bounds.
MemoryLimit OrdinaryMemoryLimit();

// The free huge pages of the default size that the control groups let this process have.
struct HugePages {
  uint64_t page_size = 0;  // bytes; 0 if the kernel has none
  uint64_t free = 0;       // pages, neither used nor reserved
  bool by_group = false;   // true if a control group sets `free`; mapping reserves none of its bound
};
// `root` is a prefix of /proc and /sys, for tests.
HugePages FreeHugePages(const std::string& root = "");

// Returns the number after `key:` in a text like /proc/meminfo, in the text's own unit.
std::optional<uint64_t> MeminfoValue(absl::string_view text, absl::string_view key);

}  // namespace tokamak::os

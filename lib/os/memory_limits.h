// How much memory this process can hope for, so that what is impossible can be refused at once, in
// words, rather than end in SIGBUS or a kill in the middle of work.
//
// An estimate: others use memory too. Where the kernel does not tell, there is no limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tokamak::os {

struct MemoryLimit {
  uint64_t bytes = UINT64_MAX;
  std::string reason;  // what sets it: "memory and swap that are free", say
};

// The lowest limit on new ordinary memory: what is available now, and the control groups' bounds.
MemoryLimit OrdinaryMemoryLimit();

// The free huge pages of the default size, as far as the control groups let this process have them.
struct HugePages {
  uint64_t page_size = 0;  // bytes; 0 where the kernel has none
  uint64_t free = 0;       // pages, neither used nor promised to somebody
  bool by_group = false;   // a control group sets that; mapping keeps no part of its bound
};
// `root` stands before /proc and /sys, for tests.
HugePages FreeHugePages(const std::string& root = "");

// The number after `key:` in a text like /proc/meminfo, in the text's own unit.
std::optional<uint64_t> MeminfoValue(absl::string_view text, absl::string_view key);

}  // namespace tokamak::os

// ProgramPages checks that the program's memory is still as registered: a program may have unmapped
// or protected it, or cut off the file behind it. A kernel has pinned its pages; here an access
// would end the process. So the NIC asks before, and a request fails as if its key were invalid.
//
// The check touches each page, or writes there, which costs some ten nanoseconds more than an
// unchecked write. If that faults, the signal (SIGSEGV or SIGBUS) leads back to the check; all
// others go on to the handler before ours.
//
// Other memory mapped at the same place is not noticed. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/verbs/soft/host_memory.h"

namespace tokamak::verbs::kernel {

class ProgramPages final : public soft::HostMemory {
 public:
  // Installs our handler for these signals, once. A program that takes them later, and does not
  // hand on foreign ones, is ended by such a fault.
  static void TakeFaults();

  bool MayRead(const uint8_t* memory, size_t length) const override;
  bool MayChange(uint8_t* memory, size_t length) const override;
  bool Write(uint8_t* to, const uint8_t* from, size_t length) const override;
};

}  // namespace tokamak::verbs::kernel

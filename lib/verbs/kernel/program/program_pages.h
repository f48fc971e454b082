// ProgramPages says whether the program's memory is still what it registered: a program may unmap
// or protect it meanwhile, or cut off the file behind it. A kernel has pinned its pages; here an
// access would end the process. So the NIC asks before each access, and a request fails as if its
// key were none.
//
// To ask is to touch each page, or to write there, which costs some ten nanoseconds more than to
// write unasked. Where that faults, the signal (SIGSEGV or SIGBUS) leads back to who asked; all
// others go on to the handler that there was.
//
// What the program has mapped at the same place instead is not told apart.
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/verbs/soft/host_memory.h"

namespace tokamak::verbs::kernel {

class ProgramPages final : public soft::HostMemory {
 public:
  // Those signals come here from now on; called again it does nothing. A program that takes them
  // later, and hands on to nobody what is not its own, is ended as before.
  static void TakeFaults();

  bool MayRead(const uint8_t* memory, size_t length) const override;
  bool MayChange(uint8_t* memory, size_t length) const override;
  bool Write(uint8_t* to, const uint8_t* from, size_t length) const override;
};

}  // namespace tokamak::verbs::kernel

// The program's memory, as the kernel treats it: memory that a command points to may be missing,
// and then the command fails with EFAULT, without a fault.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tokamak::verbs::kernel {

int CopyFromProgram(uint64_t from, void* to, size_t size);
int CopyToProgram(uint64_t to, const void* from, size_t size);

// Makes every page present, as if the kernel had pinned it. Returns 0, or EFAULT if not all is
// mapped, or writable if asked. May take long, so call it without locks.
int Populate(uint64_t address, uint64_t length, bool writable);

}  // namespace tokamak::verbs::kernel

// The program's memory, as the kernel treats it: memory that a command points to may be missing,
// and then the command fails with EFAULT, without a fault.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tokamak::verbs::kernel {

// Copy `size` bytes from or to an address of a command. Return 0 or EFAULT.
int CopyFromProgram(uint64_t from, void* to, size_t size);
int CopyToProgram(uint64_t to, const void* from, size_t size);

// Returns 0 if `length` bytes at `address` are mapped, and writable if asked, otherwise EFAULT.
// Every page is present afterwards, as if the kernel had pinned it. May take long, as pages are
// touched for the first time, and goes through in pieces, so call it without locks.
int Populate(uint64_t address, uint64_t length, bool writable);

}  // namespace tokamak::verbs::kernel

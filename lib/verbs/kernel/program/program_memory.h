// The program's memory, as the kernel treats it: what a command points to may not be there, and
// then the command fails with EFAULT; nothing faults.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tokamak::verbs::kernel {

// Copy `size` bytes from or to where a command says. Return 0 or EFAULT.
int CopyFromProgram(uint64_t from, void* to, size_t size);
int CopyToProgram(uint64_t to, const void* from, size_t size);

// Whether `length` bytes at `address` are mapped, and writable where asked: 0, or EFAULT. Every page
// is present afterwards, as if the kernel had pinned it. It may take long where pages are touched
// for the first time, and goes through in pieces, so call it without locks.
int Populate(uint64_t address, uint64_t length, bool writable);

}  // namespace tokamak::verbs::kernel

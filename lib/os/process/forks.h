// Whether this process is still the one that made something: what a child shares with its parent
// after fork(), such as the other end of a socket, is the parent's.
//
// Children of vfork() and posix_spawn() only run another program, and are not told apart.
// Thread rule: any thread.
#pragma once

#include <cstdint>

namespace tokamak::os {

// How many fork() lie between this process and the one that first asked. No system call.
uint64_t ForkCount();

}  // namespace tokamak::os

// Tells a process from its forked children: objects that a child shares with its parent after
// fork(), such as the other end of a socket, are the parent's.
//
// Children of vfork() and posix_spawn(), which only run another program, are not told apart. Thread
// rule: any thread.
#pragma once

#include <cstdint>

namespace tokamak::os {

// The number of fork() between the process that first called this and this one. No system call.
uint64_t ForkCount();

}  // namespace tokamak::os

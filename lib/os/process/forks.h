// Tells a process from its forked children: objects that a child shares with its parent after
// fork(), such as the other end of a socket, are the parent's.
//
// Not for children of vfork() and posix_spawn(), which only run another program. Thread rule: any
// thread.
#pragma once

#include <cstdint>

namespace tokamak::os {

// Counts fork() from the first caller to this process. No system call.
uint64_t ForkCount();

}  // namespace tokamak::os

// What there is once in a process that we are preloaded into: its options, its kernel, and which of
// its descriptors are ours.
//
// Nothing here has a constructor or destructor that runs by itself: programs call before the first
// and after the last.
//
// Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lib/verbs/user/kernel.h"

namespace tokamak::verbs::user::preload {

enum class Kind : uint8_t {
  kOther,      // none of ours
  kDevice,     // /dev/infiniband/uverbsN
  kManager,    // /dev/infiniband/rdma_cm
  kChannel,    // a completion channel or asynchronous events
  kInherited,  // a device or manager that the parent of this process opened: it takes no commands
};

// The kernel of this process; made when it is first asked for. Null where the options are wrong, or
// the process has inherited a kernel that is another's (fork).
Kernel* TheKernel();

// The same for whoever holds a descriptor or a queue of its: without a look at whose process this
// is, since the child of a vfork() must not do more than close descriptors.
Kernel* RunningKernel();

// What `descriptor` is. One look at a table, for each write() and read() of the program.
Kind KindOf(int descriptor);
void SetKind(int descriptor, Kind kind);

// The program closes `descriptor`, or puts another file there.
void Forget(int descriptor);

void ForgetRange(unsigned first, unsigned last);

// The real folder that stands for /sys, as whole as ever where `whole`; empty where there is none.
std::string SysfsFolder(bool whole);

// A line for the user, where asked for (Options::log) or `always`.
void Say(const std::string& line, bool always = false);

}  // namespace tokamak::verbs::user::preload

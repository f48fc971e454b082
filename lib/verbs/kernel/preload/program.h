// What there is once in a process that we are preloaded into: its options, its kernel, and which of
// its descriptors are ours.
//
// Nothing here has a constructor or destructor that runs by itself: programs call before the first
// and after the last.
//
// Thread rule: any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "lib/verbs/kernel/kernel.h"

namespace tokamak::verbs::kernel::preload {

enum class Kind : uint8_t {
  kOther,      // none of ours
  kDevice,     // /dev/infiniband/uverbsN
  kManager,    // /dev/infiniband/rdma_cm
  kChannel,    // a completion channel or asynchronous events
  kInherited,  // a device or manager that the parent of this process opened: it takes no commands
  kHidden,     // of our own: the program does not know it
};

// The kernel of this process; made when it is first asked for, to open something. Null where the
// options are wrong, or the process has inherited a kernel that is another's (fork).
Kernel* TheKernel();

// The same for whoever holds a descriptor or a queue of its: without a look at whose process this
// is, since the child of a vfork() must not do more than close descriptors.
Kernel* RunningKernel();

// How many devices there are, whether or not there is a kernel yet.
size_t DeviceCount();

// What `descriptor` is. One look at a table, for each write() and read() of the program.
Kind KindOf(int descriptor);
void SetKind(int descriptor, Kind kind);

// Whether `descriptor` is one that the program cannot have from us: it closes whatever there is, or
// takes a number of its own choice.
bool IsHidden(int descriptor);

// The program closes `descriptor`, which is not hidden, or puts another file there.
void Forget(int descriptor);

// The same of all that it can have from `first` to `last`.
void ForgetRange(unsigned first, unsigned last);

// Calls `close_all` for the ranges that are left of `first` to `last` when what is hidden stays.
// Returns what that returned last; 0 where nothing is left.
int CloseAround(unsigned first, unsigned last, absl::FunctionRef<int(unsigned first, unsigned last)> close_all);

// The real folder that stands for /sys, as whole as ever where `whole`; empty where there is none.
std::string SysfsFolder(bool whole);

// A line for the user, where asked for (Options::log) or `always`.
void Say(const std::string& line, bool always = false);

}  // namespace tokamak::verbs::kernel::preload

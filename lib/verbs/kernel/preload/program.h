// The state of the process that we are preloaded into: its options, its kernel, and which of its
// descriptors are ours.
//
// It has no constructor or destructor that runs by itself: programs call before the first and after
// the last.
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
  kOther,      // not ours
  kDevice,     // /dev/infiniband/uverbsN
  kManager,    // /dev/infiniband/rdma_cm
  kChannel,    // a completion channel or asynchronous events
  kInherited,  // a device or manager of this process's parent: it takes no commands
  kHidden,     // internal: the program does not know it
};

// Returns the kernel of this process, made at the first call, to open something. Null if the
// options are invalid, or the process has inherited a kernel that is another's (fork).
Kernel* TheKernel();

// The same for holders of a descriptor or queue of it: without a check whose process this is, since
// the child of a vfork() must not do more than close descriptors.
Kernel* RunningKernel();

// Number of devices, with or without a kernel.
size_t DeviceCount();

// Returns the kind of `descriptor`: one look at a table, for each write() and read() of the
// program.
Kind KindOf(int descriptor);
void SetKind(int descriptor, Kind kind);

// True if the program cannot have `descriptor` from us: it closes all descriptors, or takes a
// number of its own choice.
bool IsHidden(int descriptor);

// The program closes `descriptor`, which is not hidden, or puts another file there.
void Forget(int descriptor);

// The same for all from `first` to `last` that it can have.
void ForgetRange(unsigned first, unsigned last);

// Calls `close_all` for the ranges of `first` to `last` without hidden descriptors. Returns its
// last result; 0 if no range is left.
int CloseAround(unsigned first, unsigned last, absl::FunctionRef<int(unsigned first, unsigned last)> close_all);

// Returns the real folder that replaces /sys, completed if `whole`; empty if there is none.
std::string SysfsFolder(bool whole);

// Writes a line for the user, if asked for (Options::log) or `always`.
void Say(const std::string& line, bool always = false);

}  // namespace tokamak::verbs::kernel::preload

// The state of the process that we are preloaded into: its options, its kernel, and which of its
// descriptors are ours.
//
// Programs call before the first constructor has run and after the last destructor, so nothing here
// depends on either.
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
  kInherited,  // a device or manager of this process's parent: takes no commands
  kHidden,     // unknown to the program
};

// Returns this process's kernel, made at the first call, to open something. Null: the options are
// invalid, or the process has inherited another's kernel (fork).
Kernel* TheKernel();

// The same for holders of a descriptor or queue of it. Does not check whose process this is, as the
// child of a vfork() may only close descriptors.
Kernel* RunningKernel();

size_t DeviceCount();

// Returns the kind of `descriptor`. It costs one look at a table, since each write() and read() of
// the program asks.
Kind KindOf(int descriptor);
void SetKind(int descriptor, Kind kind);

// True if the program cannot have `descriptor` from us: it closes all descriptors, or takes a
// number of its own choice.
bool IsHidden(int descriptor);

// The program closes `descriptor`, which is not hidden, or puts another file there.
void Forget(int descriptor);

// The same for a range, except for hidden descriptors.
void ForgetRange(unsigned first, unsigned last);

// Calls `close_all` for the ranges of `first` to `last` without hidden descriptors. Returns its
// last result; 0 if no range is left.
int CloseAround(unsigned first, unsigned last, absl::FunctionRef<int(unsigned first, unsigned last)> close_all);

// Returns the real folder that replaces /sys, completed if `whole`; empty if there is none.
std::string SysfsFolder(bool whole);

// Writes a line for the user, if asked for (Options::log) or `always`.
void Say(const std::string& line, bool always = false);

}  // namespace tokamak::verbs::kernel::preload

// The state of the process that we are preloaded into: its options, its kernel, and which of its
// descriptors are ours.
//
// Programs call before the first constructor and after the last destructor: none runs here.
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
  kChannel,    // completions' or asynchronous events'
  kInherited,  // the parent's: takes no commands
  kHidden,     // unknown to the program
};

// Makes the kernel at the first call, to open something. Null: invalid options, or an inherited
// kernel (fork).
Kernel* TheKernel();

// Serves holders of its descriptor or queue, without checking whose process this is: a vfork()'s
// child may only close descriptors.
Kernel* RunningKernel();

size_t DeviceCount();

// Costs one table look-up: each write() and read() asks.
Kind KindOf(int descriptor);
void SetKind(int descriptor, Kind kind);

// True if the program, which closes all or a number of its choice, cannot have it from us.
bool IsHidden(int descriptor);

// The program closes it, if not hidden, or puts another file there.
void Forget(int descriptor);

// Forgets a range, without hidden ones.
void ForgetRange(unsigned first, unsigned last);

// Calls `close_all` between hidden descriptors. Returns the last result; 0 without any.
int CloseAround(unsigned first, unsigned last, absl::FunctionRef<int(unsigned first, unsigned last)> close_all);

// Replaces /sys, completed if `whole`; empty: none.
std::string SysfsFolder(bool whole);

// Writes if asked for (Options::log) or `always`.
void Say(const std::string& line, bool always = false);

}  // namespace tokamak::verbs::kernel::preload

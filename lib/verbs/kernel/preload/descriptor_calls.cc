// The functions of the C library that act on descriptors, for those that are ours: commands come by
// write(), events go by read().
#include <fcntl.h>
#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>

#include "lib/verbs/kernel/preload/program.h"
#include "lib/verbs/kernel/preload/real.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using tokamak::verbs::kernel::preload::CloseAround;
using tokamak::verbs::kernel::preload::Forget;
using tokamak::verbs::kernel::preload::ForgetRange;
using tokamak::verbs::kernel::preload::IsHidden;
using tokamak::verbs::kernel::preload::Kind;
using tokamak::verbs::kernel::preload::KindOf;
using tokamak::verbs::kernel::preload::RunningKernel;

bool TakesCommands(Kind kind) { return kind == Kind::kDevice || kind == Kind::kManager || kind == Kind::kInherited; }

// Carries out a command. Returns an errno, or 0. EACCES: this process has not opened the device
// itself, as in the kernel's ib_safe_file_access().
int Command(int descriptor, const void* buffer, size_t size) {
  if (KindOf(descriptor) == Kind::kInherited) return EACCES;
  tokamak::verbs::kernel::Kernel* const kernel = RunningKernel();
  if (kernel == nullptr) return EIO;
  return KindOf(descriptor) == Kind::kDevice ? kernel->Write(descriptor, buffer, size)
                                             : kernel->WriteToManager(descriptor, buffer, size);
}

}  // namespace

EXPORT ssize_t write(int descriptor, const void* buffer, size_t size) {
  if (!TakesCommands(KindOf(descriptor))) return REAL(write)(descriptor, buffer, size);
  if (const int error = Command(descriptor, buffer, size)) {
    errno = error;
    return -1;
  }
  return static_cast<ssize_t>(size);
}

EXPORT ssize_t read(int descriptor, void* buffer, size_t size) {
  if (KindOf(descriptor) == Kind::kChannel) {
    const int flags = REAL(fcntl)(descriptor, F_GETFL);
    tokamak::verbs::kernel::Kernel* const kernel = RunningKernel();
    if (kernel != nullptr && (flags & O_NONBLOCK) == 0) {
      if (const int error = kernel->WaitForEvent(descriptor)) {
        errno = error;
        return -1;
      }
    }
  }
  return REAL(read)(descriptor, buffer, size);
}

// Refused: rdma-core then writes commands.
EXPORT int ioctl(int descriptor, unsigned long request, ...) noexcept {  // NOLINT(runtime/int): as declared
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (TakesCommands(KindOf(descriptor))) {
    errno = ENOTTY;
    return -1;
  }
  return REAL(ioctl)(descriptor, request, argument);
}

// Refused: rdma-core then looks in /sys.
EXPORT int socket(int domain, int type, int protocol) noexcept {
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  return REAL(socket)(domain, type, protocol);
}

// To the program, our own descriptors are not open.
EXPORT int close(int descriptor) {
  if (IsHidden(descriptor)) {
    errno = EBADF;
    return -1;
  }
  Forget(descriptor);
  return REAL(close)(descriptor);
}

EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  const bool closes = (flags & ~static_cast<int>(CLOSE_RANGE_UNSHARE)) == 0 && first <= last;
  if (!closes) return REAL(close_range)(first, last, flags);
  ForgetRange(first, last);
  return CloseAround(first, last, [flags](unsigned from, unsigned to) { return REAL(close_range)(from, to, flags); });
}

EXPORT void closefrom(int first) noexcept {
  const auto from = static_cast<unsigned>(std::max(first, 0));
  ForgetRange(from, UINT_MAX);
  const int closed =
      CloseAround(from, UINT_MAX, [](unsigned begin, unsigned end) { return REAL(close_range)(begin, end, 0); });
  if (closed == 0) return;
  // The kernel, or a sandbox, lacks close_range().
  const auto limit = static_cast<unsigned>(sysconf(_SC_OPEN_MAX));
  for (unsigned descriptor = from; descriptor < limit; ++descriptor) {
    if (!IsHidden(static_cast<int>(descriptor))) REAL(close)(static_cast<int>(descriptor));
  }
}

// A number in use was just given to another thread.
EXPORT int dup2(int from, int to) noexcept {
  if (IsHidden(to) && from != to) {
    errno = EBUSY;
    return -1;
  }
  if (from != to) Forget(to);
  return REAL(dup2)(from, to);
}

EXPORT int dup3(int from, int to, int flags) noexcept {
  if (IsHidden(to) && from != to) {
    errno = EBUSY;
    return -1;
  }
  if (from != to) Forget(to);
  return REAL(dup3)(from, to, flags);
}

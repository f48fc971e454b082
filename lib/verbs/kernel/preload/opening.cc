#include "lib/verbs/kernel/preload/opening.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "lib/verbs/kernel/preload/program.h"

namespace tokamak::verbs::kernel::preload {

int OpenDeviceFile(const DeviceFile& file, int flags) {
  Kernel* const kernel = TheKernel();
  int descriptor = -1;
  const bool is_device = file.kind == DeviceFile::Kind::kUverbs;
  int error = ENODEV;
  if (kernel != nullptr) {
    error = is_device ? kernel->OpenDevice(file.index, &descriptor) : kernel->OpenManager(&descriptor);
  }
  if (error != 0) {
    static std::atomic<bool> said{false};
    if (kernel != nullptr && !kernel->trouble().empty() && !said.exchange(true)) Say(kernel->trouble(), true);
    errno = error;
    return -1;
  }
  if ((flags & O_CLOEXEC) == 0) fcntl(descriptor, F_SETFD, 0);
  SetKind(descriptor, is_device ? Kind::kDevice : Kind::kManager);
  return descriptor;
}

size_t DeviceIndexOf(int descriptor) {
  Kernel* const kernel = TheKernel();
  return kernel == nullptr ? 0 : kernel->DeviceOf(descriptor);
}

}  // namespace tokamak::verbs::kernel::preload

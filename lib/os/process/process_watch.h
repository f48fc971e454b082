// ProcessWatch notices the end of a process that need not be our child.
//
// A process that has ended never writes to shared memory again. Mappings of its forked children,
// and descriptors that it gave away, are not noticed.
// Thread rule: the loop's thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

class ProcessWatch final {
 public:
  // `ended` runs once, in a task of its own, and may drop the watch. kNotFound: it has ended
  // already. Other errors: it cannot be watched (our pid namespace does not show it, so that its
  // number is 0 here; no descriptor is left).
  static absl::StatusOr<std::unique_ptr<ProcessWatch>> Start(EpollLoop& loop, pid_t pid, std::function<void()> ended);

  // Returns false if it has ended, without the loop's help; true if that cannot be found out.
  bool running() const;

  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

 private:
  ProcessWatch(EpollLoop& loop, FileDescriptor process, std::function<void()> ended);

  const FileDescriptor process_;
  const std::shared_ptr<const std::function<void()>> ended_;
  FdWatch watch_;
};

}  // namespace tokamak::os

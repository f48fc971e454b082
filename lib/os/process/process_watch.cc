#include "lib/os/process/process_watch.h"

#include <poll.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

extern "C" {
#include <sys/pidfd.h>  // glibc 2.36 lacks extern "C" there
}

namespace tokamak::os {

absl::StatusOr<std::unique_ptr<ProcessWatch>> ProcessWatch::Start(EpollLoop& loop, pid_t pid,
                                                                  std::function<void()> ended) {
  FileDescriptor process(pidfd_open(pid, 0));
  if (!process.valid() && errno == ESRCH) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  if (!process.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch process ", pid, " (pidfd_open needs Linux 5.3)"));
  }
  return std::unique_ptr<ProcessWatch>(new ProcessWatch(loop, std::move(process), std::move(ended)));
}

ProcessWatch::ProcessWatch(EpollLoop& loop, FileDescriptor process, std::function<void()> ended)
    : process_(std::move(process)),
      ended_(std::make_shared<const std::function<void()>>(std::move(ended))),
      watch_(loop.Watch(process_.get(), EPOLLIN, [this](uint32_t) {
        const auto handler = ended_;  // a copy: it may drop this
        watch_.Reset();
        (*handler)();
      })) {}

bool ProcessWatch::running() const {
  pollfd polled = {process_.get(), POLLIN, 0};
  return poll(&polled, 1, 0) != 1;  // an error does not show that the process ended
}

}  // namespace tokamak::os

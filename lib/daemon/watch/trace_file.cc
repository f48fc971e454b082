#include "lib/daemon/watch/trace_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::daemon {

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path) {
  std::ofstream file(path);
  if (!file) {
    return absl::InvalidArgumentError(absl::StrCat("--trace: cannot write ", path, " (", std::strerror(errno),
                                                   "): give a file in a folder that is there"));
  }
  return std::unique_ptr<TraceFile>(new TraceFile(path, std::move(file)));
}

TraceFile::TraceFile(std::string path, std::ofstream file)
    : path_(std::move(path)), file_(std::move(file)), log_(kMaxPhases, [] {
        return base::Time() + base::Nanoseconds(static_cast<int64_t>(os::EpollLoop::MonotonicNanoseconds()));
      }) {}

TraceFile::~TraceFile() {
  log_.WriteTraceEvents(file_);
  file_.close();
  LOG_IF(ERROR, !file_) << "the trace could not be written to " << path_ << ": is there room?";
  LOG_IF(WARNING, log_.dropped() > 0) << path_ << " has the first " << kMaxPhases << " phases of pulls, not the "
                                      << log_.dropped() << " after them";
}

}  // namespace tokamak::daemon

// ChildProcess is a program that we started: it is watched through a descriptor, asked to end and
// then killed, and never left behind by accident.
//
// With a process group of its own, its children end with it.
// Thread rule: one at a time; Start from any thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::os {

struct ChildOptions {
  std::vector<std::string> argv;                                 // the program first: a path, or a name in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours, or replacing
  std::string output;  // file that standard output and error append to; empty: ours
  bool own_group = true;
  // True to kill it when the thread that started it ends.
  bool die_with_parent = false;
};

struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
  std::string ToString() const;  // "exit code 1", "signal 9 (Killed)"
};

class ChildProcess final {
 public:
  // Starts it without standard input and blocked signals. kNotFound: no such program; other errors
  // name the failed step.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);

  // Kills it and its group, unless detached or waited for.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Readable at its end. Valid while this lives.
  int descriptor() const { return descriptor_.get(); }

  // Does not wait.
  bool running();

  // Includes its own group. kFailedPrecondition: it has ended.
  absl::Status Signal(int signal);

  // Waits up to `deadline` (kDeadlineExceeded), and kills the rest of its group.
  absl::StatusOr<ExitStatus> Wait(base::Duration deadline);

  // Sends SIGTERM, and after `grace` SIGKILL. Returns its end, even an earlier one.
  ExitStatus Stop(base::Duration grace);

  // Lets it run on. This object may be dropped.
  void Detach() { detached_ = true; }

 private:
  ChildProcess(pid_t pid, FileDescriptor descriptor, bool own_group)
      : pid_(pid), descriptor_(std::move(descriptor)), own_group_(own_group) {}

  bool EndsWithin(base::Duration wait);
  void Kill(int signal);
  void Reap();

  const pid_t pid_;
  const FileDescriptor descriptor_;
  const bool own_group_;
  bool detached_ = false;
  bool reaped_ = false;
  ExitStatus status_;  // once reaped
};

}  // namespace tokamak::os

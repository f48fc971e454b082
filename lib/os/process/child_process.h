// ChildProcess is a program that we started: it is watched through a descriptor, asked to end and
// then killed, and never left behind by accident.
//
// With a process group of its own, the program's own children end with it.
// Thread rule: one thread at a time; Start from any thread.
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
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours, or replacing variables of ours
  std::string output;  // file that standard output and error append to; empty: ours
  bool own_group = true;
  // True to kill it when the thread that started it ends, however that happens.
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
  // Starts the program, with an empty standard input and no signal blocked. kNotFound: no such
  // program; other errors name the failed step.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);

  // Kills the program and its group, unless it was detached or waited for.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Readable once the program has ended. Valid while this lives.
  int descriptor() const { return descriptor_.get(); }

  // True if the program has not ended yet. Does not wait.
  bool running();

  // Sends a signal to the program, and to its own group if it has one. kFailedPrecondition: it has
  // ended.
  absl::Status Signal(int signal);

  // Waits up to `deadline` (kDeadlineExceeded) for the program's end, and kills the rest of its
  // group.
  absl::StatusOr<ExitStatus> Wait(base::Duration deadline);

  // Sends SIGTERM, and SIGKILL after `grace`. Returns how it ended, even if that was before.
  ExitStatus Stop(base::Duration grace);

  // Lets the program run until it ends by itself. This object may be dropped.
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

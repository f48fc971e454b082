// Interruption lets SIGINT, SIGTERM and SIGHUP end this program only after it has tidied up.
//
// A thread of its own waits for them, so that a command may block in a call meanwhile. Signals that
// were ignored when the program started, as nohup has it, stay ignored.
// What one process sends twice within a second is one request: timeout(1) sends its signal to its
// child, and then to the group that the child is in.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <thread>

#include "lib/os/file_descriptor.h"

namespace tokamak::cli {

class Interruption final {
 public:
  // Must be made before any other thread starts. `tidy_up` runs once, on a thread of its own; then
  // the signal ends the program. A second request ends it at once.
  explicit Interruption(std::function<void()> tidy_up);

  // Where a signal came already, the program ends here.
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  void Watch();
  void EndBy(uint32_t signal);

  const std::function<void()> tidy_up_;
  sigset_t signals_;
  sigset_t mask_before_;
  os::FileDescriptor raised_;   // readable once a signal came
  os::FileDescriptor stopped_;  // readable once this is dropped
  std::thread thread_;
};

}  // namespace tokamak::cli

// Interruption lets SIGINT, SIGTERM and SIGHUP end this program only after it has tidied up.
//
// Its own thread waits: commands may block. Signals ignored at the start (nohup) stay ignored. Two
// signals of one process within a second are one request: timeout(1) signals its child, then the
// group.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <thread>

#include "lib/os/file_descriptor.h"

namespace tokamak::cli {

class Interruption final {
 public:
  // Make it before other threads. `tidy_up` runs once, on its thread; then the signal ends the
  // program. A second request ends it at once.
  explicit Interruption(std::function<void()> tidy_up);

  // Ends the program here if a signal has come.
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  void Watch();
  void EndBy(uint32_t signal);

  const std::function<void()> tidy_up_;
  sigset_t signals_;
  sigset_t mask_before_;
  os::FileDescriptor raised_;   // readable after a signal
  os::FileDescriptor stopped_;  // readable once dropped
  std::thread thread_;
};

}  // namespace tokamak::cli

// TokdProcess runs the real tokd in a folder of its own, and can tell what it left behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/os/process/child_process.h"
#include "tests/support/short_folder.h"
#include "tokamak/client.h"

namespace tokamak::daemon {

constexpr std::chrono::seconds kPatience(60);

using testing_support::ShortFolder;

// How a tokd that was to fail ended.
struct Ended {
  os::ExitStatus status;
  std::string text;  // standard output and error
  size_t lines() const;
};

class TokdProcess final {
 public:
  // tokd with node `index`'s device and address (tests/support/test_devices.h), socket
  // nodeINDEX.sock and a small memory, and `more` flags behind.
  TokdProcess(const ShortFolder& folder, int index, const std::vector<std::string>& more);

  // Waits until it is ready; a failure of the test if it does not get there.
  void AwaitReady();
  // Waits for its end.
  Ended AwaitEnd();
  // As asked by SIGTERM.
  Ended Terminate();
  void Signal(int signal);
  // kill -9, and waited for.
  void Kill();

  Client Connect(Access access = Access::kReadAndCreate) const;
  const std::string& socket() const { return socket_; }
  bool running() { return process_->running(); }
  pid_t pid() const { return process_->pid(); }
  std::string log() const;

  // Memory of the process alone, in KiB: resident, without the store that it shares.
  uint64_t own_memory() const;
  int descriptors() const;

 private:
  std::string socket_;
  std::string log_;
  std::unique_ptr<os::ChildProcess> process_;
};

// The flag that names node 1 as the directory.
std::vector<std::string> DirectoryOfNode1();

// Waits until `check` holds, looking again and again; false after kPatience.
bool Eventually(const std::function<bool()>& check);

uint64_t Number(Client& client, const std::string& name);

// `size` bytes that `seed` decides.
std::vector<uint8_t> Pattern(size_t size, uint8_t seed);
bool Same(Span<const uint8_t> a, Span<const uint8_t> b);

}  // namespace tokamak::daemon

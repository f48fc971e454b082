// Kernel is the RDMA part of a kernel, for one process: its devices, and what the process has
// opened of them. lib/verbs/kernel/preload directs a program's system calls here.
//
// Devices are made when the first is opened, and last until the process ends.
//
// Errors are errno values, 0 is success. Thread rule: any thread.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "lib/base/trace.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/kernel/cm/cm_context.h"
#include "lib/verbs/kernel/cm/neighbours.h"
#include "lib/verbs/kernel/event_takers.h"
#include "lib/verbs/kernel/program/failing_request.h"
#include "lib/verbs/kernel/program/options.h"
#include "lib/verbs/kernel/program/program_pages.h"
#include "lib/verbs/kernel/progress.h"
#include "lib/verbs/kernel/user_context.h"
#include "lib/verbs/kernel/user_device.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/fabrics/faulty_fabric.h"
#include "lib/verbs/soft/fabrics/tap_fabric.h"
#include "lib/verbs/soft/packets/pcap.h"

namespace tokamak::verbs::kernel {

class Kernel final {
 public:
  static std::vector<Identity> IdentitiesOf(const Options& options);

  // `identities` are IdentitiesOf(options).
  Kernel(const Options& options, std::vector<Identity> identities);
  ~Kernel();

  // Opens the device of that index for the program. EADDRINUSE, ENODEV and others: it has no
  // network; trouble() has the reason.
  int OpenDevice(size_t index, int* descriptor);

  // Opens a channel of the connection manager, and all devices, since an address may lead to any.
  int OpenManager(int* descriptor);

  // Returns the index of an opened device; 0 if the descriptor is none.
  size_t DeviceOf(int descriptor);

  // Sets the callback for each channel's descriptor that a command makes.
  void set_on_channel(std::function<void(int descriptor)> on_channel) { on_channel_ = std::move(on_channel); }

  // Sets the callback for lines to the user (Options::explain, Options::counters).
  void set_on_line(std::function<void(const std::string& line)> on_line) { on_line_ = std::move(on_line); }

  // Returns the number of completions that the program has not taken from a queue; 0 if there is no
  // such queue.
  uint32_t CompletionsIn(int descriptor, uint32_t handle);

  // Carries out a command that the program wrote to a descriptor of OpenDevice or OpenManager.
  // Asking for an event may wait; the thread may be cancelled there, so callers must have nothing
  // to clean up (cancellable_sleep.h).
  int Write(int descriptor, const void* buffer, size_t size);
  int WriteToManager(int descriptor, const void* buffer, size_t size);

  void Close(int descriptor);

  // The program's poll was empty.
  void Poll();

  // Serves the network until there is something to read, in place of the program's wait for a
  // channel. Returns 0, or EINTR. The thread may be cancelled, as in Write.
  int WaitForEvent(int descriptor);

  // The process ends: closes everything, and refuses to open more.
  void Depart();

  // True if a socket is one of our devices', by which others find this process.
  bool IsPort(int socket) const;

  // The reason why a device could not be opened, in a line.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Device;

  int OpenDeviceHeld(size_t index);
  int Run(int descriptor, const Command& command);
  int RunHeld(int descriptor, const Command& command);
  ABSL_ATTRIBUTE_NOINLINE int RunManager(int descriptor, const void* buffer, size_t size, bool asks_first);
  ABSL_ATTRIBUTE_NOINLINE void ExplainToUser(const void* buffer, size_t size, int error);
  void SayCounters();
  absl::Status MakeDevice(size_t index);

  const Options options_;
  const std::vector<Identity> identities_;
  base::NoTrace trace_;
  os::EpollLoop loop_;
  Neighbours neighbours_{loop_};
  FailingRequest failing_;
  const ProgramPages program_pages_;
  std::vector<std::unique_ptr<Device>> devices_;  // by index; null until opened
  std::vector<UserDevice*> open_devices_;         // the same
  std::map<int, std::unique_ptr<UserContext>> contexts_;
  std::map<int, std::unique_ptr<CmContext>> managers_;
  EventTakers event_takers_;  // of these
  std::function<void(int)> on_channel_;
  std::function<void(const std::string&)> on_line_ = [](const std::string&) {};
  std::atomic<bool> departed_{false};
  std::string trouble_;
  std::unique_ptr<Progress> progress_;  // has the lock of all these
};

}  // namespace tokamak::verbs::kernel

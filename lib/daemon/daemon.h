// Daemon is tokd without its main: shared memory, devices, a machine (lib/node/machine.h) on real
// loops, and the clients' socket.
//
//   SharedMemory, Rails -> Machine -> ClientServer
//
// Thread rule: the control loop's thread, which runs the loop that it is given.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/trace.h"
#include "lib/daemon/clients/client_server.h"
#include "lib/daemon/clients/session.h"
#include "lib/daemon/devices/rails.h"
#include "lib/daemon/flags/options.h"
#include "lib/daemon/memory/heap_trimmer.h"
#include "lib/daemon/metrics/node_snapshot.h"
#include "lib/daemon/watch/http_hosts.h"
#include "lib/daemon/watch/http_server.h"
#include "lib/daemon/watch/loop_desk.h"
#include "lib/daemon/watch/status_site.h"
#include "lib/daemon/watch/trace_file.h"
#include "lib/node/machine.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/shared_memory.h"

namespace tokamak::daemon {

// After this time the daemon is ready even without the directory: its own programs are served.
constexpr base::Duration kJoinPatience = base::Seconds(3);

class Daemon final {
 public:
  // Opens everything. An error says in one line what is wrong and what to do; nothing is left
  // behind. Enters the directory once the loop runs; one that is out of reach is tried again and
  // again.
  // Touching much memory takes seconds: `stop_asked` is polled meanwhile, and ends the start
  // (kCancelled).
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(os::EpollLoop& loop, const DaemonOptions& options,
                                                       const std::function<bool()>& stop_asked);
  ~Daemon();

  // Reports the directory's answers, on the loop. OK, the last one: the node is in it.
  // kAlreadyExists: another live node has its name. Else the reason why it is not in it after
  // kJoinPatience.
  void OnStanding(std::function<void(const absl::Status&)> told);

  // With --evacuate first hands the objects put here over to other nodes. Leaves the directory,
  // takes no more clients, waits at most options.drain for peers that still read from us or lack
  // bytes that we sent; then runs `done`. Destroy the daemon after.
  void Drain(std::function<void()> done);

  // Takes over the options that may change while it runs: drain, evacuate and the programs' quota.
  // Ignores the others.
  void Reload(const DaemonOptions& options);

  node::Node& node() { return machine_->node(); }
  // The log of --trace; null: none.
  base::PhaseLog* phases() { return trace_ == nullptr ? nullptr : &trace_->log(); }

 private:
  Daemon(os::EpollLoop& loop, const DaemonOptions& options) : loop_(loop), options_(options), trimmer_(loop) {}
  absl::Status Open(const std::function<bool()>& stop_asked);
  absl::Status OpenDevices();
  absl::Status OpenMemory(const std::function<bool()>& stop_asked);
  absl::Status Touch(const os::SharedMemory& memory, const std::function<bool()>& stop_asked);
  absl::Status OpenMachine();
  transport::Policy TransferPolicy() const;
  base::Duration AckTimeout() const;
  void Answered(const absl::Status& status);
  absl::Status ServeClients();
  std::shared_ptr<const HttpHosts> OwnHosts() const;
  absl::Status ServeHttp();
  // Leaves the devices' counts empty: they may have to be read from the kernel.
  NodeSnapshot SnapshotWithoutDevices() const;
  NodeSnapshot Snapshot() const;
  node::NodeNumbers SayNumbers() const;

  os::EpollLoop& loop_;
  DaemonOptions options_;
  const HeapTrimmer trimmer_;
  uint64_t incarnation_ = 0;
  base::NoTrace no_trace_;
  std::unique_ptr<TraceFile> trace_;  // null: none
  std::unique_ptr<os::SharedMemory> memory_;
  std::string pages_;  // of the memory: for the log, once all is open
  std::unique_ptr<Rails> rails_;
  std::unique_ptr<node::Machine> machine_;
  std::unique_ptr<SessionContext> session_context_;
  std::unique_ptr<ClientServer> clients_;
  absl::Status standing_;  // the directory's last answer
  std::function<void(const absl::Status&)> on_standing_;
  base::Timer patience_;
  base::Pending evacuation_;
  base::Time began_;
  bool draining_ = false;
  // For --http; null without it. The server's threads ask the desk, which is closed first.
  std::unique_ptr<LoopDesk> desk_;
  std::unique_ptr<StatusSite> site_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace tokamak::daemon

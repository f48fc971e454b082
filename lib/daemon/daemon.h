// Daemon is tokd without main: shared memory, devices, a machine (lib/node/machine.h) on real
// loops, and the clients' socket.
//
//   SharedMemory, Rails -> Machine -> ClientServer
//
// Thread rule: the control loop's thread.
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

// Then the daemon is ready even without the directory: its own programs are served.
constexpr base::Duration kJoinPatience = base::Seconds(3);

class Daemon final {
 public:
  // Opens everything, or nothing on error, which says in one line what to do. The running loop
  // enters the directory, retrying. `stop_asked` is polled while memory is touched, for seconds; it
  // ends the start with kCancelled.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(os::EpollLoop& loop, const DaemonOptions& options,
                                                       const std::function<bool()>& stop_asked);
  ~Daemon();

  // Reports the directory's answers, on the loop. OK, the last: in. kAlreadyExists: another live
  // node has the name. Else why it is out after kJoinPatience.
  void OnStanding(std::function<void(const absl::Status&)> told);

  // With --evacuate hands its objects over first. Leaves the directory, takes no more clients,
  // waits at most options.drain for peers that still read from us or lack bytes sent; then runs
  // `done`. Destroy the daemon after.
  void Drain(std::function<void()> done);

  // Applies drain, evacuate and the programs' quota only, and reads the secret file again.
  void Reload(const DaemonOptions& options);

  node::Node& node() { return machine_->node(); }
  // Null without --trace.
  base::PhaseLog* phases() { return trace_ == nullptr ? nullptr : &trace_->log(); }

 private:
  Daemon(os::EpollLoop& loop, const DaemonOptions& options) : loop_(loop), options_(options), trimmer_(loop) {}
  absl::Status Open(const std::function<bool()>& stop_asked);
  absl::Status ReadSecrets();
  transport::PeerSecurity Security() const;
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
  // Leaves out device counts, which the kernel may have to read.
  NodeSnapshot SnapshotWithoutDevices() const;
  NodeSnapshot Snapshot() const;
  node::NodeNumbers SayNumbers() const;

  os::EpollLoop& loop_;
  DaemonOptions options_;
  const HeapTrimmer trimmer_;
  uint64_t incarnation_ = 0;
  std::shared_ptr<const security::ClusterSecrets> secrets_;  // null: peers are not authenticated
  base::NoTrace no_trace_;
  std::unique_ptr<TraceFile> trace_;
  std::unique_ptr<os::SharedMemory> memory_;
  std::string pages_;  // for the log, once all is open
  std::unique_ptr<Rails> rails_;
  std::unique_ptr<node::Machine> machine_;
  std::unique_ptr<SessionContext> session_context_;
  std::unique_ptr<ClientServer> clients_;
  absl::Status standing_;
  std::function<void(const absl::Status&)> on_standing_;
  base::Timer patience_;
  base::Pending evacuation_;
  base::Time began_;
  bool draining_ = false;
  // Null without --http. The server's threads ask the desk, which is closed first.
  std::unique_ptr<LoopDesk> desk_;
  std::unique_ptr<StatusSite> site_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace tokamak::daemon

// Daemon is tokd without its main: the store, the device, the engines, the directory, the node and the clients' socket, made
// in the order in which they need each other and dropped in the reverse.
//
//   SharedMemory -> Store      Rails -> Engines -> DirectoryHost -> Node -> ClientServer
//
// Thread rule: the control loop's thread, which runs the loop that it is given.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/trace.h"
#include "lib/daemon/client_server.h"
#include "lib/daemon/directory_host.h"
#include "lib/daemon/engines.h"
#include "lib/daemon/options.h"
#include "lib/daemon/rails.h"
#include "lib/daemon/session.h"
#include "lib/node/node.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/shared_memory.h"
#include "lib/store/store.h"

namespace tokamak::daemon {

class Daemon final {
 public:
  // Opens everything, or says in one line what is wrong and what to do, leaving nothing behind. Enters the directory once the
  // loop runs; a directory that is out of reach is waited for. Touching much memory takes seconds: `stop_asked` is looked at
  // meanwhile, and ends the start (kCancelled).
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(os::EpollLoop& loop, const DaemonOptions& options,
                                                       const std::function<bool()>& stop_asked);
  ~Daemon();

  // Leaves the directory, takes no more clients, waits for peers that still read from us or have not all that we sent them (at
  // most options.drain), then `done`. Destroy the daemon after.
  void Drain(std::function<void()> done);

  node::Node& node() { return *node_; }

 private:
  Daemon(os::EpollLoop& loop, const DaemonOptions& options) : loop_(loop), options_(options) {}
  absl::Status Open(const std::function<bool()>& stop_asked);
  absl::Status OpenDevices();
  absl::Status OpenStore();
  absl::Status TouchMemory(const std::function<bool()>& stop_asked);
  absl::Status OpenTransport();
  base::Duration AckTimeout() const;
  void OpenNode();
  absl::Status ServeClients();
  void CheckDrained();
  void SettleEngines();

  os::EpollLoop& loop_;
  const DaemonOptions options_;
  uint64_t incarnation_ = 0;
  base::NoTrace trace_;
  std::unique_ptr<os::SharedMemory> memory_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Rails> rails_;
  std::unique_ptr<Engines> engines_;
  std::unique_ptr<DirectoryHost> directory_;
  std::unique_ptr<node::Node> node_;
  std::unique_ptr<SessionContext> session_context_;
  std::unique_ptr<ClientServer> clients_;
  std::function<void()> drained_;
  base::Time drain_until_;
  base::Timer drain_timer_;
  size_t engines_to_settle_ = 0;
};

}  // namespace tokamak::daemon

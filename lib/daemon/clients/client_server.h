// ClientServer is the daemon's Unix socket: it accepts programs of this machine and gives each a
// Session.
//
// A protocol violation, unread answers or no hello end a connection; its resources go back, the
// memory of unsealed objects when the program has ended (departed.h). Bounds: client_programs.h.
// Thread rule: the control loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/daemon/clients/client_programs.h"
#include "lib/daemon/clients/departed.h"
#include "lib/daemon/clients/session.h"
#include "lib/daemon/metrics/client_counters.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/sockets/unix_socket.h"

namespace tokamak::daemon {

// Clients beyond the bounds, which get the reason after their hello; beyond this the oldest gets
// none.
constexpr size_t kMaxRefused = 64;
constexpr uint64_t kMaxMemoryOfRefused = 16 << 20;
constexpr base::Duration kHelloDeadline = base::Seconds(10);

struct ClientServerOptions {
  os::SocketAccess access = os::SocketAccess::kUser;
  ClientPrograms::Bounds bounds;
  base::Duration hello_deadline = kHelloDeadline;
};

class ClientServer final {
 public:
  // Takes the path; clients wait until Serve and the loop runs. kAlreadyExists: another daemon
  // listens.
  static absl::StatusOr<std::unique_ptr<ClientServer>> Listen(os::EpollLoop& loop, const std::string& path,
                                                              const ClientServerOptions& options = {});
  ~ClientServer();

  // Call once, before the loop runs. `context` and `arena`, the store's memfd, must outlive it.
  // `read_only`: the same opened for reading; a client gets it alone, or both.
  void Serve(const SessionContext& context, int arena, os::FileDescriptor read_only);

  // Leaves connected clients.
  void StopListening();

  size_t clients() const { return clients_.size(); }
  const ClientCounters& counters() const { return counters_; }
  // Beside the store's.
  uint64_t client_memory() const { return programs_.memory(); }
  size_t departed() const { return departed_ == nullptr ? 0 : departed_->programs(); }

 private:
  struct Client {
    ClientPrograms::Place place;  // the others claim memory of it
    std::unique_ptr<os::UnixConnection> connection;
    std::unique_ptr<Session> session;
    base::Timer hello_deadline;
  };
  struct Refused {
    absl::Status why;
    std::unique_ptr<os::UnixConnection> connection;
  };

  ClientServer(os::EpollLoop& loop, const ClientServerOptions& options) : loop_(loop), options_(options) {}

  void Accept(os::FileDescriptor socket);
  void Refuse(os::FileDescriptor socket, const absl::Status& why);
  void EndRefused(uint64_t number);
  void Handle(uint64_t number, os::Frame frame);
  void Send(uint64_t number, const std::vector<uint8_t>& frame, Descriptors descriptors);
  bool Congested(uint64_t number) const;
  void Drop(uint64_t number, const absl::Status& why);
  void DropSilent(uint64_t number);
  void CountEnd(const Client& client, const absl::Status& why);
  void Bury();

  os::EpollLoop& loop_;
  const ClientServerOptions options_;
  ClientPrograms programs_{options_.bounds};
  base::ByteBudget refused_memory_{kMaxMemoryOfRefused};
  const SessionContext* context_ = nullptr;  // null until Serve
  int arena_ = -1;
  os::FileDescriptor read_only_;
  uint64_t last_number_ = 0;
  ClientCounters counters_;
  std::unique_ptr<Departed> departed_;
  std::map<uint64_t, Client> clients_;
  std::map<uint64_t, Refused> refused_;
  // Dropped in a task of its own: a client's code may be running.
  std::vector<Client> leaving_;
  std::vector<Refused> refused_leaving_;
  base::Timer bury_;
  std::unique_ptr<os::UnixListener> listener_;
};

}  // namespace tokamak::daemon

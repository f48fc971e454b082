// ClientServer is the daemon's Unix socket: it accepts programs of this machine and gives each a
// Session.
//
// A client that violates the protocol, does not read its answers, or sends no hello, loses its
// connection; its resources go back, the memory of its unsealed objects only when its program has
// ended (departed.h). A program's and a user's parts are bounded (client_programs.h). Thread rule:
// the control loop.
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

// Clients beyond the bounds, which get the reason after their hello. Beyond this the oldest is
// closed without one.
constexpr size_t kMaxRefused = 64;
constexpr uint64_t kMaxMemoryOfRefused = 16 << 20;
// Time within which a client must send its hello, or lose its place.
constexpr base::Duration kHelloDeadline = base::Seconds(10);

struct ClientServerOptions {
  os::SocketAccess access = os::SocketAccess::kUser;
  ClientPrograms::Bounds bounds;
  base::Duration hello_deadline = kHelloDeadline;
};

class ClientServer final {
 public:
  // Takes the path; clients wait until Serve and until the loop runs. kAlreadyExists: another
  // daemon listens at `path`.
  static absl::StatusOr<std::unique_ptr<ClientServer>> Listen(os::EpollLoop& loop, const std::string& path,
                                                              const ClientServerOptions& options = {});
  ~ClientServer();

  // Call once, before the loop runs. `context` must outlive it. `arena` is the store's memfd, which
  // must stay open, and `read_only` the same opened for reading: a client gets the second, or both.
  void Serve(const SessionContext& context, int arena, os::FileDescriptor read_only);

  // Takes no more clients; connected ones go on.
  void StopListening();

  size_t clients() const { return clients_.size(); }
  const ClientCounters& counters() const { return counters_; }
  // Bytes held for all clients, beside the store's.
  uint64_t client_memory() const { return programs_.memory(); }
  // Programs without a connection that may still write to memory.
  size_t departed() const { return departed_ == nullptr ? 0 : departed_->programs(); }

 private:
  struct Client {
    ClientPrograms::Place place;  // of which the others claim memory
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
  const SessionContext* context_ = nullptr;  // until Serve
  int arena_ = -1;
  os::FileDescriptor read_only_;
  uint64_t last_number_ = 0;
  ClientCounters counters_;
  std::unique_ptr<Departed> departed_;  // from Serve on
  std::map<uint64_t, Client> clients_;
  std::map<uint64_t, Refused> refused_;
  // Dropped in a task of its own: the code that drops a client may be running in it.
  std::vector<Client> leaving_;
  std::vector<Refused> refused_leaving_;
  base::Timer bury_;
  std::unique_ptr<os::UnixListener> listener_;
};

}  // namespace tokamak::daemon

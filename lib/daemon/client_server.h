// ClientServer is the daemon's Unix socket: it accepts programs of this machine and gives each a
// Session.
//
// A client that breaks the protocol, or does not take its answers, loses its connection; what it
// held goes back, the memory of what it had not sealed only when its program has ended
// (departed.h). The number of clients is bounded.
// Thread rule: the control loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/daemon/departed.h"
#include "lib/daemon/session.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/unix_socket.h"

namespace tokamak::daemon {

constexpr size_t kMaxClients = 1024;
// Clients beyond these, which are told why when they say hello. Where more come, the oldest is
// ended without a word.
constexpr size_t kMaxRefused = 64;

// Totals since the server began.
struct ClientCounters {
  uint64_t accepted = 0;
  uint64_t refused = 0;          // kMaxClients were connected
  uint64_t protocol_errors = 0;  // connections that ended since the client broke the protocol
  uint64_t stalled = 0;          // since it did not take its answers
};

class ClientServer final {
 public:
  // Takes the path; clients wait until Serve and until the loop runs. kAlreadyExists: another
  // daemon listens at `path`.
  static absl::StatusOr<std::unique_ptr<ClientServer>> Listen(os::EpollLoop& loop, const std::string& path,
                                                              os::SocketAccess access = os::SocketAccess::kUser);
  ~ClientServer();

  // Once, before the loop runs. `context` must outlive it. `arena` is the memfd of the store, which
  // must stay open, and `read_only` the same opened for reading only: a client gets the second, or
  // both.
  void Serve(const SessionContext& context, int arena, os::FileDescriptor read_only);

  // Takes no more clients; those that are connected go on.
  void StopListening();

  size_t clients() const { return clients_.size(); }
  const ClientCounters& counters() const { return counters_; }
  // Programs without a connection that may still write to memory.
  size_t departed() const { return departed_ == nullptr ? 0 : departed_->programs(); }

 private:
  struct Client {
    std::unique_ptr<os::UnixConnection> connection;
    std::unique_ptr<Session> session;  // none: it is refused
  };

  explicit ClientServer(os::EpollLoop& loop) : loop_(loop) {}

  void Accept(os::FileDescriptor socket);
  void Refuse(os::FileDescriptor socket);
  void EndRefused(uint64_t number);
  void Handle(uint64_t number, os::Frame frame);
  void Send(uint64_t number, const std::vector<uint8_t>& frame, Descriptors descriptors);
  bool Congested(uint64_t number) const;
  void Drop(uint64_t number, const absl::Status& why);
  void CountEnd(const Client& client, const absl::Status& why);
  void Bury();

  os::EpollLoop& loop_;
  const SessionContext* context_ = nullptr;  // until Serve
  int arena_ = -1;
  os::FileDescriptor read_only_;
  uint64_t last_number_ = 0;
  ClientCounters counters_;
  std::unique_ptr<Departed> departed_;  // from Serve on
  std::map<uint64_t, Client> clients_;
  std::map<uint64_t, Client> refused_;
  std::vector<Client> leaving_;  // dropped by a task of its own: what drops a client may be running in it
  base::Timer bury_;
  std::unique_ptr<os::UnixListener> listener_;
};

}  // namespace tokamak::daemon

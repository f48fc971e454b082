// What an application holds of a connection: Connection, ConnectionRequest and Listener of the
// software NIC.
//
// A handle keeps the NIC alive and tells its application what happens, on the application's loop
// and never inside a call: the connection manager leaves news with the handle under the NIC's mutex
// and raises its signal; the signal's task takes them out and runs the handler without the mutex.
// Once a handle is dropped nobody reaches it any more.
//
// Thread rule: a handle belongs to the thread of its loop; Tell and what is said to be so are
// called with the NIC's mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "lib/base/lifetime.h"
#include "lib/verbs/soft/cm/connection_state.h"
#include "lib/verbs/soft/cm/management.h"
#include "lib/verbs/soft/state/nic_mutex.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

// Requests of which a listener's application is told in one task. How many may wait for it is
// bounded by HalfOpenBounds, for all listeners.
constexpr size_t kMaxToldAtOnce = 64;

// A request as its listener is told of it.
struct PendingRequest {
  uint64_t key = 0;  // of its record
  Address peer;
  UserData private_data{};
  ReqMad req;
};

// Whoever is told of a connection's fate, under the NIC's mutex: it must not call back.
class ConnectionOwner {
 public:
  // `state`: the connection's, with the news.
  virtual void Tell(const ConnectionNews& news, const ConnectionState& state) REQUIRES_NIC_MUTEX = 0;

  // The connection that it owns.
  uint64_t key GUARDED_BY_NIC_MUTEX = 0;

 protected:
  ~ConnectionOwner() = default;
};

// Whoever is asked for connections at one port.
class ConnectionListener {
 public:
  // There are requests that it does not know of. Under the NIC's mutex: it must not call back.
  virtual void Wake() REQUIRES_NIC_MUTEX = 0;
  virtual const Address& listens_at() const = 0;

  std::deque<uint64_t> waiting GUARDED_BY_NIC_MUTEX;   // keys of the requests that the application does not know of yet
  std::set<uint64_t> unanswered GUARDED_BY_NIC_MUTEX;  // those, and those that it has not answered

 protected:
  ~ConnectionListener() = default;
};

// The connection manager, as its handles see it.
class ConnectionDesk {
 public:
  virtual absl::StatusOr<std::unique_ptr<Connection>> Accept(uint64_t key, QueuePair& queue_pair,
                                                             const ConnectOptions& options, ConnectionHandler handler)
      ABSL_LOCKS_EXCLUDED(kNicMutex) = 0;
  virtual void Reject(uint64_t key, const UserData& private_data) REQUIRES_NIC_MUTEX = 0;

  // The handle is being dropped.
  virtual void Forget(ConnectionOwner& owner) REQUIRES_NIC_MUTEX = 0;
  virtual void Forget(ConnectionListener& listener) REQUIRES_NIC_MUTEX = 0;

  // The oldest request of this listener that is still wanted and that its application does not know
  // of.
  virtual std::optional<PendingRequest> TakeRequest(ConnectionListener& listener) REQUIRES_NIC_MUTEX = 0;

 protected:
  ~ConnectionDesk() = default;
};

class SoftConnection final : public Connection, public ConnectionOwner {
 public:
  SoftConnection(std::shared_ptr<Management> nic, ConnectionDesk& desk, base::EventLoop& owner, const Address& peer,
                 ConnectionHandler handler);
  ~SoftConnection() override;

  const Address& peer() const override { return peer_; }

  void Tell(const ConnectionNews& news, const ConnectionState& state) override REQUIRES_NIC_MUTEX;

 private:
  void Deliver();

  const std::shared_ptr<Management> nic_;
  ConnectionDesk& desk_;
  const Address peer_;
  ConnectionHandler handler_;
  absl::InlinedVector<ConnectionNews, 2> news_ GUARDED_BY_NIC_MUTEX;  // Established and an end are all that comes
  const base::Lifetime lifetime_;
  const std::unique_ptr<base::Signal> signal_;
};

class SoftConnectionRequest final : public ConnectionRequest {
 public:
  SoftConnectionRequest(std::shared_ptr<Management> nic, ConnectionDesk& desk, const PendingRequest& request)
      : nic_(std::move(nic)), desk_(desk), request_(request) {}
  ~SoftConnectionRequest() override;

  const Address& peer() const override { return request_.peer; }
  absl::Span<const uint8_t> private_data() const override { return request_.private_data; }

  absl::StatusOr<std::unique_ptr<Connection>> Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                     ConnectionHandler handler) override;
  void Reject(absl::Span<const uint8_t> private_data) override;

 private:
  const std::shared_ptr<Management> nic_;
  ConnectionDesk& desk_;
  const PendingRequest request_;
  bool answered_ = false;
};

class SoftListener final : public Listener, public ConnectionListener {
 public:
  SoftListener(std::shared_ptr<Management> nic, ConnectionDesk& desk, base::EventLoop& loop, const Address& address,
               RequestHandler handler);
  ~SoftListener() override;

  const Address& address() const override { return address_; }

  const Address& listens_at() const override { return address_; }
  void Wake() override REQUIRES_NIC_MUTEX { signal_->Raise(); }

 private:
  void Deliver();

  const std::shared_ptr<Management> nic_;
  ConnectionDesk& desk_;
  const Address address_;
  RequestHandler handler_;
  const base::Lifetime lifetime_;
  const std::unique_ptr<base::Signal> signal_;
};

}  // namespace tokamak::verbs::soft

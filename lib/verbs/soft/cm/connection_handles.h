// The handles of connections: Connection, ConnectionRequest and Listener of the software NIC.
//
// A handle keeps the NIC alive. The connection manager leaves news with it under the NIC's mutex
// and raises its signal, whose task runs the application's handler without the mutex. A dropped
// handle gets no more news. Thread rule: a handle belongs to the thread of its loop; annotated
// methods are called with the NIC's mutex.
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

// Requests reported to a listener in one task. HalfOpenBounds bound how many may wait, over all
// listeners.
constexpr size_t kMaxToldAtOnce = 64;

struct PendingRequest {
  uint64_t key = 0;  // of its record
  Address peer;
  UserData private_data{};
  ReqMad req;
};

// Takes a connection's news under the NIC's mutex: it must not call back.
class ConnectionOwner {
 public:
  // `state` is the connection's, after the news.
  virtual void Tell(const ConnectionNews& news, const ConnectionState& state) REQUIRES_NIC_MUTEX = 0;

  uint64_t key GUARDED_BY_NIC_MUTEX = 0;

 protected:
  ~ConnectionOwner() = default;
};

class ConnectionListener {
 public:
  // Reports new requests under the NIC's mutex: it must not call back.
  virtual void Wake() REQUIRES_NIC_MUTEX = 0;
  virtual const Address& listens_at() const = 0;

  std::deque<uint64_t> waiting GUARDED_BY_NIC_MUTEX;   // keys of requests not yet reported
  std::set<uint64_t> unanswered GUARDED_BY_NIC_MUTEX;  // those, and those reported but not answered

 protected:
  ~ConnectionListener() = default;
};

class ConnectionDesk {
 public:
  virtual absl::StatusOr<std::unique_ptr<Connection>> Accept(uint64_t key, QueuePair& queue_pair,
                                                             const ConnectOptions& options, ConnectionHandler handler)
      ABSL_LOCKS_EXCLUDED(kNicMutex) = 0;
  virtual void Reject(uint64_t key, const UserData& private_data) REQUIRES_NIC_MUTEX = 0;

  // Forgets a handle that is being dropped.
  virtual void Forget(ConnectionOwner& owner) REQUIRES_NIC_MUTEX = 0;
  virtual void Forget(ConnectionListener& listener) REQUIRES_NIC_MUTEX = 0;

  // Returns the oldest request that is still wanted and not yet reported.
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
  absl::InlinedVector<ConnectionNews, 2> news_ GUARDED_BY_NIC_MUTEX;  // at most Established and an end
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

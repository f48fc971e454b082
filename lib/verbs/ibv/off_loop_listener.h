// Listening with connections made off the loop (off_loop_cm.h): OffLoopListener, and OffLoopRequest
// for each peer that asks. The manager's own listener and requests belong to the thread.
//
// Thread rule: a listener its loop's; a request that of the queue pair of its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/lifetime.h"
#include "lib/verbs/ibv/call_thread.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/inbox.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class OffLoopRequest final : public ConnectionRequest {
 public:
  OffLoopRequest(std::shared_ptr<CallThread> calls, std::shared_ptr<ConnectionRequest> asked, size_t max_private_data);
  ~OffLoopRequest() override;

  const Address& peer() const override { return peer_; }
  absl::Span<const uint8_t> private_data() const override { return private_data_; }

  // A failure, except for wrong options or queue pairs, rejects the peer, and is an event.
  absl::StatusOr<std::unique_ptr<Connection>> Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                     ConnectionHandler handler) override;
  void Reject(absl::Span<const uint8_t> private_data) override;

 private:
  std::shared_ptr<ConnectionRequest> Answer();  // no longer unanswered

  const std::shared_ptr<CallThread> calls_;
  std::shared_ptr<ConnectionRequest> asked_;  // the manager's; null once answered
  const size_t max_private_data_;
  const Address peer_;
  const std::vector<uint8_t> private_data_;
};

class OffLoopListener final : public Listener {
 public:
  // Errors: those of `manager`.
  static absl::StatusOr<std::unique_ptr<OffLoopListener>> Listen(std::shared_ptr<CallThread> calls,
                                                                 ConnectionManager& manager, base::EventLoop& loop,
                                                                 const Address& address, size_t max_private_data,
                                                                 RequestHandler handler);
  // Waits for the thread: the port is free on return.
  ~OffLoopListener() override;

  const Address& address() const override { return address_; }

 private:
  OffLoopListener(std::shared_ptr<CallThread> calls, base::EventLoop& loop, size_t max_private_data,
                  RequestHandler handler);

  void Present(std::shared_ptr<ConnectionRequest> asked);  // may drop this

  const std::shared_ptr<CallThread> calls_;
  const size_t max_private_data_;
  RequestHandler handler_;
  Address address_;
  std::unique_ptr<Listener> there_;  // the thread's
  const base::Lifetime lifetime_;
  Inbox inbox_;
};

}  // namespace tokamak::verbs::ibv

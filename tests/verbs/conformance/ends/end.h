// An End is all that one side of a connection needs: protection domain, completion queues, queue
// pair, connection.
//
// Its members are open, so that a test may drop or replace any of them. It watches one law in
// passing: no callback runs inside a call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/verbs/conformance/backend.h"
#include "tests/verbs/conformance/ends/memory.h"
#include "tests/verbs/conformance/ends/work.h"

namespace tokamak::verbs::conformance {

struct EndOptions {
  uint32_t max_send_requests = 64;
  uint32_t max_receive_requests = 64;
  uint32_t max_sges = 1;
  uint32_t max_inline = 0;
  Access remote_access = kRemoteWrite | kRemoteRead;
  uint32_t send_completions = 256;
  uint32_t receive_completions = 256;
  bool one_completion_queue = false;  // `sends` serves receives, too; `receives` is null
  bool may_be_made_later = false;
};

// Moves what is there out of `queue`, at most `most`.
Completions PollNow(CompletionQueue& queue, size_t most = SIZE_MAX);

// Waits until `queue` gave `count` completions. Fails the test if one is missing at the end of the
// backend's patience.
Completions Await(Backend& backend, CompletionQueue& queue, size_t count);

class End final {
 public:
  // With `home`, the queue pair belongs to that end's domain and completes into its queues, and
  // `home` must outlive it.
  End(Backend& world, size_t device_index, const EndOptions& end_options = {}, End* home = nullptr);
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  PostResult Post(std::vector<Work> batch);
  PostResult PostReceives(const std::vector<Receive>& batch);
  // The same, and nothing else than full success will do.
  void MustPost(std::vector<Work> batch);
  void MustPostReceives(const std::vector<Receive>& batch);

  void Arm(CompletionQueue& queue, bool solicited_only = false);

  Completions AwaitSends(size_t count) { return Await(backend, *home_.sends, count); }
  Completions AwaitReceives(size_t count) { return Await(backend, *home_.receives, count); }

  // Connects queue_pair to `service`; what happens comes in `events`.
  absl::Status Connect(const Address& service, const ConnectOptions& options);
  absl::Status Accept(ConnectionRequest& request, const ConnectOptions& options);

  // Where memory for it is registered, whoever's the domain is.
  ProtectionDomain& home_domain() { return *home_.domain; }

  ConnectionHandler Handler();
  bool Saw(ConnectionEvent::Kind kind) const;
  QueuePairState state() const { return queue_pair->state(); }

  // A fresh queue pair in place of the present one. Drop the connection first.
  void MakeQueuePair();

  Backend& backend;
  const size_t index;
  const EndOptions options;
  Device& device;
  base::EventLoop& loop;

  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> sends;
  std::unique_ptr<CompletionQueue> receives;
  std::unique_ptr<QueuePair> queue_pair;
  std::unique_ptr<Connection> connection;

  // Events of the completion queues, counted; a test may do more on each.
  int send_events = 0;
  int receive_events = 0;
  std::function<void()> on_send_event;
  std::function<void()> on_receive_event;

  // The events of the connection, and what came with them.
  std::vector<ConnectionEvent::Kind> events;
  std::vector<absl::Status> statuses;  // one for each event
  std::vector<uint8_t> private_data;   // of the last event
  uint32_t path_mtu = 0;
  uint32_t peer_queue_pair = 0;  // its number, as the connection manager says
  std::function<void(const ConnectionEvent&)> on_event;

 private:
  std::unique_ptr<CompletionQueue> MakeCompletionQueue(uint32_t depth, int* events_seen,
                                                       std::function<void()>* handler);

  End& home_;
  int calling_ = 0;  // device calls on the stack
};

}  // namespace tokamak::verbs::conformance

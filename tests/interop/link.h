// Link is one end of a connection between two programs that try out each other's RDMA device.
//
// Unlike everything in lib it waits: a call runs the loop until what it is for has happened, so
// that a program that follows a script reads like one. Each wait ends after LinkOptions::patience
// with a status that says what did not come. The first request that fails is kept, and ends all
// waits; requests that are flushed because the peer left are no failures.
//
// Thread rule: one thread, which runs the loop in these calls.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/verbs.h"

namespace tokamak::interop {

struct LinkOptions {
  uint32_t depth = 64;                          // of the send and of the receive queue
  base::Duration patience = base::Seconds(30);  // of each wait
  verbs::ReliabilityOptions reliability;
};

// Accepts Links from peers.
class Service final {
 public:
  // Listens at `port` of the device, 0 for any. Everything from the device is dropped before it.
  static absl::StatusOr<std::unique_ptr<Service>> Listen(os::EpollLoop& loop, verbs::Device& device, uint16_t port);

  const verbs::Address& address() const { return listener_->address(); }

  // The next peer that asks.
  absl::StatusOr<std::unique_ptr<verbs::ConnectionRequest>> Await(base::Duration patience);

 private:
  explicit Service(os::EpollLoop& loop) : loop_(loop) {}

  os::EpollLoop& loop_;
  std::deque<std::unique_ptr<verbs::ConnectionRequest>> requests_;
  std::unique_ptr<verbs::Listener> listener_;
};

class Link final {
 public:
  // Unconnected; receives may be posted.
  static absl::StatusOr<std::unique_ptr<Link>> Open(os::EpollLoop& loop, verbs::Device& device,
                                                    const LinkOptions& options);

  // With all rights that the device knows.
  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> Register(absl::Span<uint8_t> memory);

  // Returns when the connection is up.
  absl::Status Connect(const verbs::Address& service);
  absl::Status Accept(verbs::ConnectionRequest& request);

  // Connects without a connection manager: attributes come from elsewhere. Such a connection
  // reports no end.
  absl::Status WalkByHand(const verbs::QueuePairAttributes& attributes);
  uint32_t number() const { return queue_pair_->number(); }

  // Tells the peer that this is the end.
  void Disconnect() { connection_.reset(); }

  absl::Status PostReceive(const verbs::Sge& piece);
  // The request's id and flags are not used; it is always signaled.
  absl::Status PostSend(verbs::SendRequest request, const verbs::Sge& piece);

  // The next message, in the order in which receives were posted. kAborted: the peer left, and all
  // messages were handed out.
  absl::StatusOr<verbs::Completion> AwaitReceive();
  // All that was posted to send has completed.
  absl::Status AwaitSends();
  // The peer left.
  absl::Status AwaitDisconnection();

  bool disconnected() const { return disconnected_; }
  uint32_t path_mtu() const { return path_mtu_; }  // bytes, once connected
  const verbs::Limits& limits() const { return device_.limits(); }
  const LinkOptions& options() const { return options_; }

 private:
  Link(os::EpollLoop& loop, verbs::Device& device, const LinkOptions& options)
      : loop_(loop), device_(device), options_(options) {}

  verbs::ConnectOptions Terms() const;
  void OnConnection(const verbs::ConnectionEvent& event);
  absl::Status AwaitEstablished(absl::StatusOr<std::unique_ptr<verbs::Connection>> begun);
  void Drain();

  // Until `done`, or a failure; `what` is what does not come otherwise.
  template <typename Done>
  absl::Status Await(const Done& done, const char* what);

  os::EpollLoop& loop_;
  verbs::Device& device_;
  const LinkOptions options_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;
  std::unique_ptr<verbs::Connection> connection_;  // goes before the queue pair

  bool established_ = false;
  bool disconnected_ = false;
  uint32_t path_mtu_ = 0;
  absl::Status failure_;
  uint32_t sends_out_ = 0;
  std::deque<verbs::Completion> received_;
};

}  // namespace tokamak::interop

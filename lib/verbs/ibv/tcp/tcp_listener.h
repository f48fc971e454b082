// Listening for --cm tcp: TcpListener, and TcpRequest for each peer that asked.
//
// A peer that connects has kAskDeadline to send its request and to be found (route_searches.h); one
// that cannot be reached is rejected. At most kMaxHalfOpen peers are at that, and kMaxHalfOpenOfOne
// of one address, so no host alone keeps the others out; more are closed at once. A presented
// request is a socket that nobody watches, so it outlives its listener and may be answered from the
// loop of any queue pair.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/lifetime.h"
#include "lib/base/time.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/tcp/route_searches.h"
#include "lib/verbs/ibv/tcp/tcp_connection.h"
#include "lib/verbs/ibv/tcp/tcp_line.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

constexpr base::Duration kAskDeadline = base::Seconds(5);
constexpr size_t kMaxHalfOpen = 256;
constexpr size_t kMaxHalfOpenOfOne = 64;  // of one address, with any ports
static_assert(kMaxHalfOpenOfOne < kMaxHalfOpen);
static_assert(kMaxHalfOpenOfOne >= kMaxUnanswered, "what a host asks at once may all be presented");

// Returns our side of a connection with these options, as the device is now. From any thread.
using MakeTcpOffer = std::function<TcpOffer(const ConnectOptions& options)>;

class TcpRequest final : public CountedRequest {
 public:
  // Counts itself in `unanswered`.
  TcpRequest(MakeTcpOffer make_offer, std::shared_ptr<std::atomic<size_t>> unanswered, os::FileDescriptor socket,
             const Address& peer, const TcpHello& ask);
  ~TcpRequest() override;

  const Address& peer() const override { return peer_; }
  absl::Span<const uint8_t> private_data() const override { return ask_.private_data_span(); }

  // A failure, except for wrong options or queue pairs, rejects the peer.
  absl::StatusOr<std::unique_ptr<Connection>> Accept(QueuePair& queue_pair, const ConnectOptions& options,
                                                     ConnectionHandler handler) override;
  void Reject(absl::Span<const uint8_t> private_data) override;
  void Decided() override;

 private:
  os::FileDescriptor Answer();  // no longer unanswered

  const MakeTcpOffer make_offer_;
  const std::shared_ptr<std::atomic<size_t>> unanswered_;
  std::atomic<bool> decided_{false};
  os::FileDescriptor socket_;  // none once answered
  const Address peer_;
  const TcpHello ask_;
};

class TcpListener final : public Listener {
 public:
  // `routes` is null if routes need no search. kAlreadyExists: the port is taken.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Listen(os::EpollLoop& loop, const Address& address,
                                                             MakeTcpOffer make_offer,
                                                             std::shared_ptr<RouteSearches> routes,
                                                             RequestHandler handler);
  ~TcpListener() override;

  const Address& address() const override { return address_; }

 private:
  static constexpr int kAcceptsPerTurn = 16;
  static constexpr base::Duration kRetryAccept = base::Milliseconds(100);  // without free descriptors

  class HalfOpen;

  TcpListener(os::EpollLoop& loop, os::FileDescriptor socket, const Address& address, MakeTcpOffer make_offer,
              std::shared_ptr<RouteSearches> routes, RequestHandler handler);

  void AcceptSome();
  bool HasRoomFor(const Address& peer) const;
  void Drop(HalfOpen* half_open);
  // Each may drop this.
  void OnAsk(HalfOpen* half_open, const TcpHello& ask);
  void OnRoute(HalfOpen* half_open, const TcpHello& ask, const absl::Status& found);
  void Present(HalfOpen* half_open, const TcpHello& ask);

  os::EpollLoop& loop_;
  const os::FileDescriptor socket_;
  const Address address_;
  const MakeTcpOffer make_offer_;
  const std::shared_ptr<RouteSearches> routes_;  // or null
  RequestHandler handler_;
  const std::shared_ptr<std::atomic<size_t>> unanswered_;
  std::list<std::unique_ptr<HalfOpen>> half_open_;
  const base::Lifetime lifetime_;
  base::Timer retry_;
  os::FdWatch watch_;
};

}  // namespace tokamak::verbs::ibv

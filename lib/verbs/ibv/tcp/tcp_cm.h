// verbs::ConnectionManager for fabrics without IP: numbers are exchanged over TCP, on any network,
// and the queue pairs are walked by hand (--cm tcp). For InfiniBand and RoCE; only the kernel
// connects iWARP's queue pairs.
//
// The TCP connection stays open while the connection lasts. Closing it is the goodbye; when it is
// lost the peer counts as gone, at the latest kLongestSilence (tcp_line.h) after its host vanished.
// tcp_hello.h has the exchange, docs/tcp_cm.md its bytes.
//
// RoCE: the route is searched before the queue pair's step (route_searches.h), by the passive side
// at the request, by the active side at its acceptance. Strangers' searches do not delay our own.
//
// A device runs it on a thread of its own (off_loop_cm.h). Thread rule: see verbs.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/tcp/tcp_listener.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

struct TcpCmOptions {
  Address address;                  // Device::address(): the source of lines
  std::function<LocalPort()> port;  // the present port, from any thread: its MTU may change
  uint32_t max_reads = 0;           // Limits::max_reads
  FindRoute find_route;             // null: routes need no search
};

class TcpConnectionManager final : public ConnectionManager {
 public:
  // kUnimplemented: iWARP.
  static absl::StatusOr<std::unique_ptr<TcpConnectionManager>> Make(const TcpCmOptions& options);

  absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                   RequestHandler handler) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                      const ConnectOptions& options,
                                                      ConnectionHandler handler) override;

 private:
  explicit TcpConnectionManager(const TcpCmOptions& options);

  const Address address_;
  const MakeTcpOffer make_offer_;
  // Null if routes need no search.
  const std::shared_ptr<RouteSearches> routes_to_askers_;     // shared with listeners
  const std::shared_ptr<RouteSearches> routes_to_listeners_;  // shared with connections
};

}  // namespace tokamak::verbs::ibv

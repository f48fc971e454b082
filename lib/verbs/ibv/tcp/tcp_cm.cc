#include "lib/verbs/ibv/tcp/tcp_cm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/loops.h"
#include "lib/verbs/ibv/tcp/tcp_connection.h"

namespace tokamak::verbs::ibv {

absl::StatusOr<std::unique_ptr<TcpConnectionManager>> TcpConnectionManager::Make(const TcpCmOptions& options) {
  if (options.port().link == LinkKind::kIwarp) {
    return absl::UnimplementedError("iWARP's queue pairs are connected by the kernel only: use --cm rdma");
  }
  return std::unique_ptr<TcpConnectionManager>(new TcpConnectionManager(options));
}

namespace {

std::shared_ptr<RouteSearches> MakeSearches(const FindRoute& find_route) {
  return find_route ? std::make_shared<RouteSearches>(find_route) : nullptr;
}

}  // namespace

TcpConnectionManager::TcpConnectionManager(const TcpCmOptions& options)
    : address_(options.address),
      make_offer_([port = options.port, max_reads = options.max_reads](const ConnectOptions& asked) {
        TcpOffer offer;
        offer.port = port();
        offer.psn = DrawPsn();
        offer.own_mtu = std::min(asked.max_path_mtu, offer.port.active_mtu);
        offer.max_reads = max_reads;
        return offer;
      }),
      routes_to_askers_(MakeSearches(options.find_route)),
      routes_to_listeners_(MakeSearches(options.find_route)) {}

absl::StatusOr<std::unique_ptr<Listener>> TcpConnectionManager::Listen(base::EventLoop& loop, const Address& address,
                                                                       RequestHandler handler) {
  return TcpListener::Listen(RealLoop(loop), address, make_offer_, routes_to_askers_, std::move(handler));
}

absl::StatusOr<std::unique_ptr<Connection>> TcpConnectionManager::Connect(QueuePair& queue_pair, const Address& address,
                                                                          const ConnectOptions& options,
                                                                          ConnectionHandler handler) {
  if (absl::Status status = CheckConnectOptions(options, kTcpCmPrivateData); !status.ok()) return status;
  if (absl::Status status = CheckService(address, address_); !status.ok()) return status;
  auto held = HeldQueuePair::Take(queue_pair);
  if (!held.ok()) return held.status();
  auto connection =
      std::make_unique<TcpConnection>(make_offer_(options), *std::move(held), address, options, std::move(handler));
  connection->Start(address_, routes_to_listeners_);
  return connection;
}

}  // namespace tokamak::verbs::ibv

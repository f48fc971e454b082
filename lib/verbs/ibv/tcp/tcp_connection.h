// TcpConnection is one connection that is made by hand: the exchange over TCP, and the steps of its
// queue pair.
//
//   active    kConnecting -> kAsked -> kSearching -> kUp -> kOver
//   passive   kAnswered -> kUp -> kOver
//
// kSearching, over RoCE: the peer accepted, and a thread searches its route (route_searches.h), as
// a listener does for the passive side. Neither shows that the other's way works.
//
// Law: as for RdmaConnection. Thread rule: that of its queue pair's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/verbs/ibv/cm/connected_queue_pair.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/tcp/route_searches.h"
#include "lib/verbs/ibv/tcp/tcp_line.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

struct TcpOffer {
  LocalPort port;
  uint32_t psn = 0;  // the first that we send
  uint32_t own_mtu = 0;
  uint32_t max_reads = 0;
};

class TcpConnection final : public Connection, private TcpLine::Owner {
 public:
  // `options` are valid. Does nothing yet.
  TcpConnection(const TcpOffer& offer, HeldQueuePair queue_pair, const Address& peer, const ConnectOptions& options,
                ConnectionHandler handler);
  ~TcpConnection() override;

  const Address& peer() const override { return peer_; }

  // Starts the active side. Failures are events. `routes` is null if routes need no search.
  void Start(const Address& from, std::shared_ptr<RouteSearches> routes);

  // Starts the passive side on `socket`, which brought `ask`; takes it over. A failure has rejected
  // the peer.
  absl::Status Accept(os::FileDescriptor socket, const TcpHello& ask);

 private:
  enum class Phase { kNew, kConnecting, kAsked, kSearching, kAnswered, kUp, kOver };
  void OnLineUp() override;
  void OnHello(const TcpHello& hello) override;
  void OnLineLost(const absl::Status& why) override;
  void OnAnswer(const TcpHello& hello);
  void Search(const TcpHello& answer);
  void OnAccepted(const TcpHello& answer, const absl::Status& found);

  absl::Status WalkToReadyToSend(const TcpHello& peer, uint32_t path_mtu);
  TcpHello OwnHello(TcpHello::Kind kind) const;

  // Each may drop this.
  void Establish(absl::Span<const uint8_t> private_data);
  void End(ConnectionEvent::Kind kind, absl::Status why, absl::Span<const uint8_t> private_data = {});

  const TcpOffer offer_;
  ConnectedQueuePair queue_pair_;
  os::EpollLoop& loop_;
  const Address peer_;
  const ReliabilityOptions wanted_;
  const base::Time until_;
  TcpHello hello_;  // our part of every message

  Phase phase_ = Phase::kNew;
  bool walked_ = false;  // true once the queue pair has left Init
  uint32_t path_mtu_ = 0;
  uint32_t peer_queue_pair_ = 0;           // its number
  std::shared_ptr<RouteSearches> routes_;  // of the active side, or null
  std::unique_ptr<RouteSearches::Search> search_;
  std::optional<TcpLine> line_;
  base::Timer deadline_;
  base::Timer failed_;  // reports a failure inside a call after it
  base::Timer again_;   // retries a search that has to wait for its turn
};

// Draws a first PSN, 24 bits, that late packets of earlier connections are unlikely to match.
uint32_t DrawPsn();

}  // namespace tokamak::verbs::ibv

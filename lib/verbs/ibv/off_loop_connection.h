// OffLoopConnection is a connection on its queue pair's loop; the connection manager's own
// connection runs on the device's thread (call_thread.h).
//
//   loop      deadline, the handler, the queue pair's state; a queue pair that is dropped
//   thread    the manager's connection, which walks the queue pair and gets the kernel's events
//
// The deadline counts from the call, however busy the thread is. Dropping a connection waits at
// most for the running call on its queue pair, which then is in Error and takes no step; the thread
// disconnects from the peer in its turn.
//
// Law: as RdmaConnection's and TcpConnection's.
// Thread rule: the loop's of its queue pair.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/lifetime.h"
#include "lib/verbs/ibv/call_thread.h"
#include "lib/verbs/ibv/inbox.h"
#include "lib/verbs/ibv/queue_pair.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

struct ReleaseQueuePair {
  void operator()(IbvQueuePair* queue_pair) const { queue_pair->Release(); }
};
using HeldIbvQueuePair = std::unique_ptr<IbvQueuePair, ReleaseQueuePair>;

// Errors are those of HeldQueuePair::Take.
absl::StatusOr<HeldIbvQueuePair> HoldQueuePair(QueuePair& queue_pair);

class OffLoopConnection final : public Connection {
 public:
  enum class Side : uint8_t { kActive, kPassive };

  // Makes the manager's connection, on the thread.
  using Begin = std::function<absl::StatusOr<std::unique_ptr<Connection>>(
      QueuePair& queue_pair, const ConnectOptions& options, ConnectionHandler handler)>;

  // `options` are valid. Begins once the queue pair is made. Failures are events.
  OffLoopConnection(std::shared_ptr<CallThread> calls, HeldIbvQueuePair queue_pair, Side side, const Address& peer,
                    const ConnectOptions& options, Begin begin, ConnectionHandler handler);
  ~OffLoopConnection() override;

  const Address& peer() const override { return peer_; }

 private:
  struct There {
    std::atomic<bool> dropped{false};  // true: not to begin any more
    std::unique_ptr<WalkedQueuePair> queue_pair;
    std::unique_ptr<Connection> connection;
  };

  struct Told {
    ConnectionEvent::Kind kind;
    absl::Status status;
    std::vector<uint8_t> private_data;
    uint32_t path_mtu;
    std::optional<uint8_t> reads;  // WalkedQueuePair::reads
    uint32_t peer_queue_pair = 0;
  };

  void OnMade(const absl::Status& made);
  void OnDeadline();
  void Leave();
  // Each may drop this.
  void OnTold(const Told& told);
  void Tell(const Told& told);

  const std::shared_ptr<CallThread> calls_;
  const HeldIbvQueuePair queue_pair_;
  os::EpollLoop& loop_;
  const Side side_;
  const Address peer_;
  ConnectOptions options_;  // without its private data
  const std::vector<uint8_t> private_data_;
  const base::Time until_;
  Begin begin_;  // until the thread has it
  ConnectionHandler handler_;
  bool over_ = false;
  const std::shared_ptr<ProviderQueuePair::Walker> walker_;
  std::shared_ptr<There> there_;  // once the thread has it
  const base::Lifetime lifetime_;
  Inbox inbox_;
  base::Timer deadline_;
  base::Timer next_;  // a step outside of the owner's call
};

}  // namespace tokamak::verbs::ibv

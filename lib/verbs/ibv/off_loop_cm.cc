#include "lib/verbs/ibv/off_loop_cm.h"

#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/off_loop_connection.h"
#include "lib/verbs/ibv/off_loop_listener.h"

namespace tokamak::verbs::ibv {

absl::StatusOr<std::unique_ptr<Listener>> OffLoopConnectionManager::Listen(base::EventLoop& loop,
                                                                           const Address& address,
                                                                           RequestHandler handler) {
  return OffLoopListener::Listen(calls_, *manager_, loop, address, max_private_data_, std::move(handler));
}

absl::StatusOr<std::unique_ptr<Connection>> OffLoopConnectionManager::Connect(QueuePair& queue_pair,
                                                                              const Address& address,
                                                                              const ConnectOptions& options,
                                                                              ConnectionHandler handler) {
  if (absl::Status status = CheckConnectOptions(options, max_private_data_); !status.ok()) return status;
  if (absl::Status status = CheckService(address, own_); !status.ok()) return status;
  auto held = HoldQueuePair(queue_pair);
  if (!held.ok()) return held.status();
  return std::make_unique<OffLoopConnection>(
      calls_, *std::move(held), OffLoopConnection::Side::kActive, address, options,
      [manager = manager_, address](QueuePair& there, const ConnectOptions& wanted, ConnectionHandler hears) {
        return manager->Connect(there, address, wanted, std::move(hears));
      },
      std::move(handler));
}

}  // namespace tokamak::verbs::ibv

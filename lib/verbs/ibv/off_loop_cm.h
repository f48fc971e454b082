// verbs::ConnectionManager that makes its connections off the loop: a manager of ours (rdma_cm.h,
// tcp_cm.h) works on the device's thread (call_thread.h), and the loops of the queue pairs get the
// results.
//
// Connecting takes some twenty calls of libibverbs and librdmacm, none on a loop if the queue pair
// may be made later (QueuePairOptions). The end of a connection does make one on the loop,
// ibv_modify_qp, since requests posted after it must not leave.
//
// Thread rule: see verbs.h. `manager` is used only on the thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "lib/verbs/ibv/call_thread.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class OffLoopConnectionManager final : public ConnectionManager {
 public:
  // `own`: Device::address(). `max_private_data`: Limits::max_private_data.
  OffLoopConnectionManager(std::shared_ptr<CallThread> calls, std::shared_ptr<ConnectionManager> manager,
                           const Address& own, size_t max_private_data)
      : calls_(std::move(calls)), manager_(std::move(manager)), own_(own), max_private_data_(max_private_data) {}

  // Waits for the thread.
  absl::StatusOr<std::unique_ptr<Listener>> Listen(base::EventLoop& loop, const Address& address,
                                                   RequestHandler handler) override;
  absl::StatusOr<std::unique_ptr<Connection>> Connect(QueuePair& queue_pair, const Address& address,
                                                      const ConnectOptions& options,
                                                      ConnectionHandler handler) override;

 private:
  const std::shared_ptr<CallThread> calls_;
  const std::shared_ptr<ConnectionManager> manager_;  // shared with attempts
  const Address own_;
  const size_t max_private_data_;
};

}  // namespace tokamak::verbs::ibv

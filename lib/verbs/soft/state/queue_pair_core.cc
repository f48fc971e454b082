#include "lib/verbs/soft/state/queue_pair_core.h"

#include <utility>

namespace tokamak::verbs::soft {

QueuePairCore::QueuePairCore(NicState& nic_state, QueuePairParts parts)
    : receives(parts.shared_receives != nullptr ? 0 : parts.max_receive_requests, parts.max_sges, 0),
      nic_state_(nic_state),
      parts_(std::move(parts)) {}

QueuePairCore::~QueuePairCore() {
  nic_state_.Forget(turns_);
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropOwner(number());
}

void QueuePairCore::Enter(QueuePairState to) {
  state_.store(to, std::memory_order_seq_cst);
  nic_state_.Trace(base::TraceKind::kQueuePairState, number(), static_cast<uint64_t>(to));
}

}  // namespace tokamak::verbs::soft

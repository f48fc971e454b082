#include "lib/verbs/soft/queue_pair_core.h"

#include <utility>

namespace tokamak::verbs::soft {

QueuePairCore::QueuePairCore(Engine& engine, QueuePairParts parts)
    : receives(parts.shared_receives != nullptr ? 0 : parts.max_receive_requests, parts.max_sges, 0),
      engine_(engine),
      parts_(std::move(parts)) {}

QueuePairCore::~QueuePairCore() {
  engine_.Forget(turns_);
  engine_.counters.dropped_before_send += engine_.outbox.DropOwner(number());
}

void QueuePairCore::Enter(QueuePairState to) {
  state_.store(to, std::memory_order_seq_cst);
  engine_.Trace(base::TraceKind::kQueuePairState, number(), static_cast<uint64_t>(to));
}

}  // namespace tokamak::verbs::soft

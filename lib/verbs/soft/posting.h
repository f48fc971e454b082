// How requests get into the rings: what queue pairs of both kinds and shared receive queues have in
// common.
//
// Thread rule: the owner's thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/soft/nic.h"
#include "lib/verbs/soft/state/queue_pair_core.h"
#include "lib/verbs/soft/state/work_queue.h"
#include "lib/verbs/types.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

uint64_t TotalLength(absl::Span<const Sge> sges);  // bytes
absl::Status CheckLength(uint64_t length, const Limits& limits);
absl::Status QueueFull(uint32_t depth);

// Whether a queue pair in `state` takes requests: ReadyToSend, and in Error, to flush them.
PostResult MaySend(QueuePairState state);

// What a slot sends; the bytes of an inline request are copied to `inline_bytes`.
void SetSource(absl::Span<const Sge> sges, bool is_inline, uint64_t length, uint8_t* inline_bytes, SourceBytes* slot);

// Puts receives into `queue`, stops at the first bad one, and publishes them.
PostResult PostReceives(absl::Span<const ReceiveRequest> requests, uint32_t max_sges, const Limits& limits,
                        ReceiveQueue& queue);

// The same into the queue pair's own.
PostResult PostReceivesTo(Nic& nic, QueuePairCore& queue_pair, absl::Span<const ReceiveRequest> requests,
                          uint32_t max_sges);

}  // namespace tokamak::verbs::soft

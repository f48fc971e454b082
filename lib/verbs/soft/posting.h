// How requests get into the rings of queue pairs and shared receive queues.
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

// Returns OK in ReadyToSend, and in Error, to flush.
PostResult MaySend(QueuePairState state);

// Sets what a slot sends; inline bytes are copied to `inline_bytes`.
void SetSource(absl::Span<const Sge> sges, bool is_inline, uint64_t length, uint8_t* inline_bytes, SourceBytes* slot);

// Puts receives into `queue`, up to the first bad one, and publishes them.
PostResult PostReceives(absl::Span<const ReceiveRequest> requests, uint32_t max_sges, const Limits& limits,
                        ReceiveQueue& queue);

PostResult PostReceivesTo(Nic& nic, QueuePairCore& queue_pair, absl::Span<const ReceiveRequest> requests,
                          uint32_t max_sges);

}  // namespace tokamak::verbs::soft

// How requests get into the rings: what queue pairs and shared receive queues have in common.
//
// Thread rule: the owner's thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/verbs/soft/work_queue.h"
#include "lib/verbs/types.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::soft {

uint64_t TotalLength(absl::Span<const Sge> sges);  // bytes
absl::Status CheckLength(uint64_t length, const Limits& limits);
absl::Status QueueFull(uint32_t depth);

// Puts receives into `queue`, stops at the first bad one, and publishes them.
PostResult PostReceives(absl::Span<const ReceiveRequest> requests, uint32_t max_sges, const Limits& limits,
                        ReceiveQueue& queue);

}  // namespace tokamak::verbs::soft

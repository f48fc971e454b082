#include "lib/verbs/soft/posting.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::soft {
namespace {

absl::Status Prepare(const ReceiveRequest& request, uint32_t max_sges, const Limits& limits, ReceiveQueue& queue) {
  if (request.sges.size() > max_sges) {
    return absl::InvalidArgumentError(absl::StrCat(request.sges.size(), " sges, at most ", max_sges));
  }
  const uint64_t length = TotalLength(request.sges);
  if (absl::Status s = CheckLength(length, limits); !s.ok()) return s;
  if (queue.full()) return QueueFull(queue.depth());
  ReceiveSlot& slot = queue.next();
  slot.id = request.id;
  slot.length = static_cast<uint32_t>(length);
  slot.sge_count = static_cast<uint8_t>(request.sges.size());
  std::copy(request.sges.begin(), request.sges.end(), slot.sges);
  queue.Prepare();
  return absl::OkStatus();
}

}  // namespace

uint64_t TotalLength(absl::Span<const Sge> sges) {
  uint64_t sum = 0;
  for (const Sge& sge : sges) sum += sge.length;
  return sum;
}

absl::Status CheckLength(uint64_t length, const Limits& limits) {
  if (length <= limits.max_message) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(length, " bytes, at most ", limits.max_message));
}

absl::Status QueueFull(uint32_t depth) {
  return absl::ResourceExhaustedError(absl::StrCat("the queue has ", depth, " requests; poll for completions"));
}

PostResult MaySend(QueuePairState state) {
  PostResult result;
  if (state != QueuePairState::kReadyToSend && state != QueuePairState::kError) {
    result.status = absl::FailedPreconditionError(absl::StrCat("a queue pair in ", ToString(state), " cannot send"));
  }
  return result;
}

void SetSource(absl::Span<const Sge> sges, bool is_inline, uint64_t length, uint8_t* inline_bytes, SourceBytes* slot) {
  slot->length = static_cast<uint32_t>(length);
  slot->is_inline = is_inline;
  slot->sge_count = static_cast<uint8_t>(sges.size());
  std::copy(sges.begin(), sges.end(), slot->sges);
  if (!is_inline) return;
  for (const Sge& sge : sges) {
    if (sge.length > 0) std::memcpy(inline_bytes, sge.address, sge.length);
    inline_bytes += sge.length;
  }
}

PostResult PostReceives(absl::Span<const ReceiveRequest> requests, uint32_t max_sges, const Limits& limits,
                        ReceiveQueue& queue) {
  PostResult result;
  for (const ReceiveRequest& request : requests) {
    result.status = Prepare(request, max_sges, limits, queue);
    if (!result.status.ok()) break;
    ++result.accepted;
  }
  if (result.accepted > 0) queue.Publish();
  return result;
}

PostResult PostReceivesTo(Nic& nic, QueuePairCore& queue_pair, absl::Span<const ReceiveRequest> requests,
                          uint32_t max_sges) {
  PostResult result;
  if (queue_pair.state() == QueuePairState::kReset) {
    result.status = absl::FailedPreconditionError("a queue pair in Reset takes no receives");
    return result;
  }
  if (queue_pair.shared_receives() != nullptr) {
    result.status = absl::InvalidArgumentError("the receives of this queue pair are those of its shared queue");
    return result;
  }
  result = PostReceives(requests, max_sges, nic.limits(), queue_pair.receives);
  // The NIC finds receives by itself, except those that it has to flush.
  if (result.accepted > 0 && queue_pair.failed()) nic.RingDoorbell(queue_pair);
  return result;
}

}  // namespace tokamak::verbs::soft

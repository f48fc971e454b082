#include "lib/verbs/soft/posting.h"

#include <algorithm>

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
  std::copy(request.sges.begin(), request.sges.end(), slot.sges.begin());
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

}  // namespace tokamak::verbs::soft

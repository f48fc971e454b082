#include "lib/transport/slots.h"

#include <array>
#include <utility>

#include "glog/logging.h"
#include "lib/transport/request_id.h"

namespace tokamak::transport {

absl::StatusOr<Slots> Slots::Create(verbs::ProtectionDomain& domain, uint32_t count, uint32_t size,
                                    verbs::Access access) {
  const uint64_t bytes = uint64_t{count} * size;
  std::unique_ptr<uint8_t[]> memory(new uint8_t[bytes]);  // not cleared: slots that are never used are never touched
  auto region = domain.RegisterMemory(absl::MakeSpan(memory.get(), bytes), access);
  if (!region.ok()) return region.status();
  return Slots(std::move(memory), *std::move(region), count, size);
}

verbs::PostResult PostReceives(verbs::QueuePair& queue_pair, const Slots& slots, absl::Span<const uint32_t> entries,
                               uint8_t queue) {
  std::array<verbs::ReceiveRequest, kPostBatch> requests;
  std::array<verbs::Sge, kPostBatch> pieces;
  verbs::PostResult all;
  while (all.accepted < entries.size()) {
    const absl::Span<const uint32_t> batch = entries.subspan(all.accepted, kPostBatch);
    for (size_t i = 0; i < batch.size(); ++i) {
      pieces[i] = slots.Piece(batch[i], slots.size());
      requests[i] = {RequestId{queue, true, batch[i]}.Pack(), absl::MakeConstSpan(&pieces[i], 1)};
    }
    const verbs::PostResult result = queue_pair.PostReceive(absl::MakeConstSpan(requests.data(), batch.size()));
    all.accepted += result.accepted;
    all.status = result.status;
    if (!result.ok()) break;
  }
  return all;
}

SendRing::SendRing(uint32_t entries) : entries_(entries - entries % kMinEntries) { CHECK_GE(entries, kMinEntries); }

bool SendRing::Complete(uint32_t entry) {
  const uint64_t distance = (entry + entries_ - head_ % entries_) % entries_;
  if (entry >= entries_ || distance >= taken()) return false;
  head_ += distance + 1;
  return true;
}

}  // namespace tokamak::transport

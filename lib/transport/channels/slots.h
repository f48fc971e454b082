// How requests are posted: PostReceives gives receives to the device in batches, and a SendRing
// knows which entries of a send queue are taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "lib/transport/messages/request_id.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

// Requests that are posted together.
constexpr size_t kPostBatch = 16;

// Posts a receive for each of `entries`, as RequestId of `queue` has it, into `piece_of(entry)`.
// Says how many were posted.
template <typename PieceOf>
verbs::PostResult PostReceives(verbs::QueuePair& queue_pair, absl::Span<const uint32_t> entries, uint8_t queue,
                               PieceOf piece_of) {
  std::array<verbs::ReceiveRequest, kPostBatch> requests;
  std::array<verbs::Sge, kPostBatch> pieces;
  verbs::PostResult all;
  while (all.accepted < entries.size()) {
    const absl::Span<const uint32_t> batch = entries.subspan(all.accepted, kPostBatch);
    for (size_t i = 0; i < batch.size(); ++i) {
      pieces[i] = piece_of(batch[i]);
      requests[i] = {RequestId{queue, true, batch[i]}.Pack(), absl::MakeConstSpan(&pieces[i], 1)};
    }
    const verbs::PostResult result = queue_pair.PostReceive(absl::MakeConstSpan(requests.data(), batch.size()));
    all.accepted += result.accepted;
    all.status = result.status;
    if (!result.ok()) break;
  }
  return all;
}

// Which entries of a send queue are taken. An entry is free again when its completion, or that of a
// later request, was polled (verbs.h), so entries form a ring and most requests need no completion
// of their own.
class SendRing final {
 public:
  // At least kMinEntries.
  explicit SendRing(uint32_t entries);
  static constexpr uint32_t kMinEntries = 4;

  bool full() const { return taken() == entries_; }
  uint32_t taken() const { return static_cast<uint32_t>(tail_ - head_); }
  uint32_t free() const { return entries_ - taken(); }
  uint32_t entries() const { return entries_; }
  // The entry that was taken first; of an empty ring, the next.
  uint32_t oldest() const { return static_cast<uint32_t>(head_ % entries_); }

  // The entry of the next request. The ring must not be full.
  uint32_t Take() { return static_cast<uint32_t>(tail_++ % entries_); }

  // Whether the request that was taken last has to be signaled, so that a full ring always has a
  // completion to come.
  bool signal_due() const { return tail_ % (entries_ / kMinEntries) == 0; }

  // The completion of the request that took `entry` was polled. False: no such request
  // is under way.
  [[nodiscard]] bool Complete(uint32_t entry);

 private:
  const uint32_t entries_;
  uint64_t head_ = 0;  // oldest entry that is taken
  uint64_t tail_ = 0;  // next to be taken
};

}  // namespace tokamak::transport

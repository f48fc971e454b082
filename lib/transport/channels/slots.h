// Posting of requests: PostReceives gives receives to the device in batches, and a SendRing knows
// which entries of a send queue are taken.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "lib/transport/messages/request_id.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

constexpr size_t kPostBatch = 16;

// Posts a receive for each of `entries` into `piece_of(entry)`, with a RequestId of `queue`.
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

// The taken entries of a send queue: an entry is free when its completion, or a later one, was
// polled (verbs.h), so most requests need none.
class SendRing final {
 public:
  // `entries`: at least kMinEntries.
  explicit SendRing(uint32_t entries);
  static constexpr uint32_t kMinEntries = 4;

  bool full() const { return taken() == entries_; }
  uint32_t taken() const { return static_cast<uint32_t>(tail_ - head_); }
  uint32_t free() const { return entries_ - taken(); }
  uint32_t entries() const { return entries_; }
  // The oldest taken entry; in an empty ring, the next.
  uint32_t oldest() const { return static_cast<uint32_t>(head_ % entries_); }

  // The ring must not be full.
  uint32_t Take() { return static_cast<uint32_t>(tail_++ % entries_); }

  // True if the last taken request must be signaled: a full ring always has a completion to come.
  bool signal_due() const { return tail_ % (entries_ / kMinEntries) == 0; }

  // Returns false if there is no such request.
  [[nodiscard]] bool Complete(uint32_t entry);

 private:
  const uint32_t entries_;
  uint64_t head_ = 0;  // oldest taken entry
  uint64_t tail_ = 0;  // next entry
};

}  // namespace tokamak::transport

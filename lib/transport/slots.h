// Slots are registered message buffers of one size; a SendRing hands them out in the order in which
// the device gives them back, and PostReceives gives them to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

// `count` buffers of `size` bytes in one memory region. Dropped only after the queue pairs
// that use it.
class Slots final {
 public:
  static absl::StatusOr<Slots> Create(verbs::ProtectionDomain& domain, uint32_t count, uint32_t size,
                                      verbs::Access access);

  uint8_t* at(uint32_t slot) const { return memory_.get() + uint64_t{slot} * size_; }
  verbs::Sge Piece(uint32_t slot, uint32_t length) const { return {at(slot), length, region_->lkey()}; }
  uint32_t count() const { return count_; }
  uint32_t size() const { return size_; }

 private:
  Slots(std::unique_ptr<uint8_t[]> memory, std::unique_ptr<verbs::MemoryRegion> region, uint32_t count, uint32_t size)
      : memory_(std::move(memory)), region_(std::move(region)), count_(count), size_(size) {}

  std::unique_ptr<uint8_t[]> memory_;
  std::unique_ptr<verbs::MemoryRegion> region_;  // after memory_: revoked before it is freed
  uint32_t count_;
  uint32_t size_;
};

// Requests that are posted together.
constexpr size_t kPostBatch = 16;

// Posts a receive into each of `entries` of `slots`, as RequestId of `queue` has it. Says how many
// were posted.
verbs::PostResult PostReceives(verbs::QueuePair& queue_pair, const Slots& slots, absl::Span<const uint32_t> entries,
                               uint8_t queue);

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

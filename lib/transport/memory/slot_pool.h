// SlotPool hands out registered message buffers of one size to all connections of an engine on one
// rail, so that memory is where messages are, not where they might come.
//
// A block is one memory region; an unused one is dropped if another is free as well. Slots of the
// lowest blocks go first.
//
// Law: a slot is given back only when the queue pair that was to use it is gone, or has completed
//      that request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class SlotPool final {
 public:
  // Rest of TakeSpare after a failed registration: memory is short for longer than a message takes,
  // and a try is work for the kernel, on the loop.
  static constexpr base::Duration kRegisterRest = base::Seconds(1);

  // `block`: slots of one region.
  SlotPool(base::EventLoop& loop, verbs::ProtectionDomain& domain, uint32_t slot_size, uint32_t block)
      : loop_(loop), domain_(domain), size_(slot_size), block_(block) {}
  ~SlotPool();
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  // Slots of kBlockBytes; at least kMinBlock.
  static uint32_t BlockFor(uint32_t slot_size);

  // Errors: no further memory can be registered.
  absl::StatusOr<uint32_t> Take();
  // Takes an optional slot.
  absl::StatusOr<uint32_t> TakeSpare();
  void Give(uint32_t slot);

  // True if a slot of a lower block is free.
  bool HasLower(uint32_t slot) const;

  uint8_t* at(uint32_t slot) const { return BlockOf(slot).memory.get() + uint64_t{slot % block_} * size_; }
  verbs::Sge Piece(uint32_t slot, uint32_t length) const { return {at(slot), length, BlockOf(slot).region->lkey()}; }
  uint32_t size() const { return size_; }

  uint32_t taken() const { return taken_; }
  uint64_t registered() const { return uint64_t{blocks_there_} * block_ * size_; }  // bytes

 private:
  static constexpr uint32_t kBlockBytes = 2 << 20;
  static constexpr uint32_t kMinBlock = 16;  // slots

  struct Block {
    std::unique_ptr<uint8_t[]> memory;
    std::unique_ptr<verbs::MemoryRegion> region;  // revoked before the memory is freed
    std::vector<uint32_t> free;
  };
  const Block& BlockOf(uint32_t slot) const { return *blocks_[slot / block_]; }
  absl::Status AddBlock();
  void FindLowest() const;

  base::EventLoop& loop_;
  verbs::ProtectionDomain& domain_;
  const uint32_t size_;
  const uint32_t block_;
  std::vector<std::unique_ptr<Block>> blocks_;  // null: dropped
  uint32_t blocks_there_ = 0;
  uint32_t blocks_free_ = 0;   // without a taken slot
  mutable size_t lowest_ = 0;  // no slot below is free
  uint32_t taken_ = 0;
  base::Timer register_rest_;  // armed: TakeSpare registers nothing
};

}  // namespace tokamak::transport

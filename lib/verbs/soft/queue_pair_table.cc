#include "lib/verbs/soft/queue_pair_table.h"

#include "glog/logging.h"

namespace tokamak::verbs::soft {

QueuePairTable::QueuePairTable(uint8_t first_generation) : first_generation_(first_generation), slots_(kFirstIndex) {}

uint32_t QueuePairTable::Reserve() {
  // A few indexes rest before the oldest is used again.
  constexpr size_t kResting = 64;
  uint32_t index = 0;
  if (slots_.size() < kMaxQueuePairs && free_.size() < kResting) {
    index = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
    slots_[index].number = uint32_t{first_generation_} << kIndexBits | index;
  } else if (!free_.empty()) {
    index = free_.front();
    free_.pop_front();
  } else {
    return 0;
  }
  slots_[index].used = true;
  return slots_[index].number;
}

void QueuePairTable::Insert(uint32_t number, QueuePairCore* queue_pair) {
  slots_[number & kIndexMask].queue_pair = queue_pair;
}

void QueuePairTable::Remove(uint32_t number) {
  Slot& slot = slots_[number & kIndexMask];
  CHECK(slot.used && slot.number == number);
  slot.used = false;
  slot.queue_pair = nullptr;
  FreeIfIdle(number & kIndexMask);
}

void QueuePairTable::Hold(uint32_t number) {
  Slot& slot = slots_[number & kIndexMask];
  CHECK(slot.used && slot.number == number);
  slot.held = true;
}

void QueuePairTable::Release(uint32_t number) {
  const uint32_t index = number & kIndexMask;
  if (index >= slots_.size() || slots_[index].number != number || !slots_[index].held) return;
  slots_[index].held = false;
  FreeIfIdle(index);
}

void QueuePairTable::FreeIfIdle(uint32_t index) {
  Slot& slot = slots_[index];
  if (slot.used || slot.held) return;
  const uint32_t generation = ((slot.number >> kIndexBits) + 1) & 0xff;
  slot.number = generation << kIndexBits | index;
  free_.push_back(index);
}

void QueuePairTable::ForEach(const std::function<void(QueuePairCore&)>& visit) const {
  for (const Slot& slot : slots_) {
    if (slot.queue_pair != nullptr) visit(*slot.queue_pair);
  }
}

}  // namespace tokamak::verbs::soft

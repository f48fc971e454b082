#include "lib/verbs/soft/queue_pair_table.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::verbs::soft {
namespace {

constexpr size_t kFirstSlots = 16;

// 0 and 1 are for management, the last for multicast (9.6.1.2).
constexpr uint32_t kFirstNumber = kManagementQueuePair + 1;
constexpr uint32_t kNumbers = kPsnMask - kFirstNumber;
static_assert(QueuePairTable::kMaxQueuePairs <= kNumbers / 2, "drawing finds a free number soon");

}  // namespace

QueuePairTable::QueuePairTable(const SecretNumbers& numbers) : numbers_(numbers), slots_(kFirstSlots) {}

uint32_t QueuePairTable::Reserve() {
  if (taken_ >= most_) return 0;
  if (2 * (taken_ + 1) > slots_.size()) Grow();
  for (;;) {
    const uint32_t drawn = kFirstNumber + static_cast<uint32_t>(numbers_.Below(kNumbers));
    const uint32_t number = share_.Place(drawn, kQueuePairNumberBits);
    if (number < kFirstNumber || number - kFirstNumber >= kNumbers) continue;
    Slot& slot = slots_[SlotOf(number)];
    if (slot.number != 0) continue;
    slot.number = number;
    slot.used = true;
    ++taken_;
    return number;
  }
}

void QueuePairTable::Grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  for (const Slot& slot : old) {
    if (slot.number != 0) slots_[SlotOf(slot.number)] = slot;
  }
}

void QueuePairTable::Insert(uint32_t number, QueuePairCore* queue_pair) { Taken(number).queue_pair = queue_pair; }

void QueuePairTable::Remove(uint32_t number) {
  Slot& slot = Taken(number);
  slot.used = false;
  slot.queue_pair = nullptr;
  FreeIfIdle(SlotOf(number));
}

void QueuePairTable::Hold(uint32_t number) { Taken(number).held = true; }

void QueuePairTable::Release(uint32_t number) {
  const size_t slot = SlotOf(number);
  if (!slots_[slot].held) return;
  slots_[slot].held = false;
  FreeIfIdle(slot);
}

QueuePairTable::Slot& QueuePairTable::Taken(uint32_t number) {
  Slot& slot = slots_[SlotOf(number)];
  CHECK(slot.used && slot.number == number);
  return slot;
}

void QueuePairTable::FreeIfIdle(size_t slot) {
  if (slots_[slot].used || slots_[slot].held) return;
  slots_[slot] = Slot();
  --taken_;
  // Moves up numbers behind it that are past their home.
  for (size_t at = Next(slot); slots_[at].number != 0; at = Next(at)) {
    const Slot moved = std::exchange(slots_[at], Slot());
    slots_[SlotOf(moved.number)] = moved;
  }
}

void QueuePairTable::ForEach(const std::function<void(QueuePairCore&)>& visit) const {
  std::vector<uint32_t> numbers;
  for (const Slot& slot : slots_) {
    if (slot.queue_pair != nullptr) numbers.push_back(slot.number);
  }
  for (const uint32_t number : numbers) {
    if (QueuePairCore* queue_pair = Find(number)) visit(*queue_pair);
  }
}

}  // namespace tokamak::verbs::soft

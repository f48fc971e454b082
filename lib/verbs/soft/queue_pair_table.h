// QueuePairTable finds a queue pair by its number, and gives out numbers.
//
// Anybody who knows a number can forge packets for it, so all 24 bits are drawn at random, and
// known numbers reveal no others. A held number (TIMEWAIT) is not drawn again.
//
// Each packet is a look-up: open addressing, with a number's random low bits as its home slot.
// Law: at least half of the slots are free; none is from a number's home slot to its own.
// Thread rule: the NIC's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lib/verbs/soft/number_share.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/state/secret_numbers.h"

namespace tokamak::verbs::soft {

class QueuePairCore;

class QueuePairTable final {
 public:
  static constexpr uint32_t kMaxQueuePairs = 1 << 16;
  // The bound if addresses are shared: half of a NIC's numbers, so that drawing soon finds a free
  // one.
  static constexpr uint32_t kMaxOfShare = 1 << 15;

  explicit QueuePairTable(const SecretNumbers& numbers);

  // Must be called before the first number is reserved.
  void set_share(NumberShare share) {
    share_ = share;
    most_ = share.whole() ? kMaxQueuePairs : kMaxOfShare;
  }

  // Returns a number that nobody has; 0: as many as allowed are in use or held.
  uint32_t Reserve();

  // Gives the reserved `number` to `queue_pair` until Remove.
  void Insert(uint32_t number, QueuePairCore* queue_pair);
  void Remove(uint32_t number);

  // Holds a number in use (TIMEWAIT), beyond Remove. Release ignores a number that is not held.
  void Hold(uint32_t number);
  void Release(uint32_t number);

  // Returns null if there is none.
  QueuePairCore* Find(uint32_t number) const { return slots_[SlotOf(number)].queue_pair; }

  // Visits all, in an order that the seed decides; `visit` may remove queue pairs.
  void ForEach(const std::function<void(QueuePairCore&)>& visit) const;

 private:
  struct Slot {
    uint32_t number = 0;  // 0: free
    bool used = false;
    bool held = false;
    QueuePairCore* queue_pair = nullptr;
  };

  size_t Next(size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  size_t Home(uint32_t number) const { return number & (slots_.size() - 1); }

  // Returns the slot of `number`, or the free one where it would be put.
  size_t SlotOf(uint32_t number) const {
    size_t slot = Home(number);
    while (slots_[slot].number != number && slots_[slot].number != 0) slot = Next(slot);
    return slot;
  }
  Slot& Taken(uint32_t number);
  void Grow();
  void FreeIfIdle(size_t slot);

  SecretNumbers numbers_;
  NumberShare share_;
  size_t most_ = kMaxQueuePairs;
  std::vector<Slot> slots_;  // a power of two
  size_t taken_ = 0;
};

}  // namespace tokamak::verbs::soft

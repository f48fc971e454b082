// QueuePairTable finds a queue pair by its number, and gives out numbers.
//
// Whoever knows the number of a queue pair can forge packets for it, so numbers are drawn, all 24
// bits, and nothing follows from those that are known. A number that is held (TIMEWAIT) is not drawn
// again.
//
// Look-ups are for every packet: an open-addressed table, its home slots the numbers' low bits,
// which are random already.
//
// Law: at least half of the slots are free; from a number's home slot to its own none is.
// Thread rule: under the NIC's mutex.
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
  // Where addresses are shared: half of the numbers that a NIC has, so that drawing finds one soon.
  static constexpr uint32_t kMaxOfShare = 1 << 15;

  explicit QueuePairTable(const SecretNumbers& numbers);

  // Before the first number: they are of this share.
  void set_share(NumberShare share) {
    share_ = share;
    most_ = share.whole() ? kMaxQueuePairs : kMaxOfShare;
  }

  // A number that nobody has; 0 when as many as there may be are in use or held.
  uint32_t Reserve();

  // `queue_pair` has the reserved `number` until Remove.
  void Insert(uint32_t number, QueuePairCore* queue_pair);
  void Remove(uint32_t number);

  // TIMEWAIT for a number that is in use; outlasts Remove. Release does nothing when it is not
  // held.
  void Hold(uint32_t number);
  void Release(uint32_t number);

  // Null when there is none.
  QueuePairCore* Find(uint32_t number) const { return slots_[SlotOf(number)].queue_pair; }

  // In an order that the seed decides. `visit` may take queue pairs out.
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

  // Where `number` is, or else the free slot where it would be put.
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
  std::vector<Slot> slots_;  // a power of two of them
  size_t taken_ = 0;
};

}  // namespace tokamak::verbs::soft

// QueuePairTable finds a queue pair by its number, and gives out numbers.
//
// A number is an index and a generation, so that finding is an index and a comparison, and a number
// comes again only after its index was used 256 times. A number that is held (TIMEWAIT) keeps its
// index out of use.
//
// Thread rule: under the NIC's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "lib/verbs/soft/packet.h"

namespace tokamak::verbs::soft {

class QueuePairCore;

class QueuePairTable final {
 public:
  static constexpr uint32_t kMaxQueuePairs = 1 << 16;

  explicit QueuePairTable(uint8_t first_generation);

  // A number that nobody has; 0 when kMaxQueuePairs are in use or held.
  uint32_t Reserve();

  // `queue_pair` has the reserved `number` until Remove.
  void Insert(uint32_t number, QueuePairCore* queue_pair);
  void Remove(uint32_t number);

  // TIMEWAIT for a number that is in use; outlasts Remove. Release does nothing when it is not
  // held.
  void Hold(uint32_t number);
  void Release(uint32_t number);

  // Null when there is none.
  QueuePairCore* Find(uint32_t number) const {
    const uint32_t index = number & kIndexMask;
    if (index >= slots_.size()) return nullptr;
    const Slot& slot = slots_[index];
    return slot.number == number ? slot.queue_pair : nullptr;
  }

  // In the order of their indexes.
  void ForEach(const std::function<void(QueuePairCore&)>& visit) const;

 private:
  static constexpr uint32_t kIndexBits = 16;
  static constexpr uint32_t kIndexMask = (1u << kIndexBits) - 1;
  static constexpr uint32_t kFirstIndex = kManagementQueuePair + 1;

  struct Slot {
    uint32_t number = 0;
    QueuePairCore* queue_pair = nullptr;
    bool used = false;
    bool held = false;
  };

  void FreeIfIdle(uint32_t index);

  const uint8_t first_generation_;
  std::vector<Slot> slots_;
  std::deque<uint32_t> free_;  // indexes, oldest first
};

}  // namespace tokamak::verbs::soft

// SharedSlots remembers what was posted to a shared receive queue and not polled yet.
//
// The device takes receives in order and finishes them in any, so each has a slot, and the slot's
// number travels in its wr_id. A slot is free again when its own completion was polled; room is
// counted by the latest that was, as verbs.h has it. So there are twice as many slots as the queue
// is deep: one that takes long does not hold up the others.
//
// Thread rule: the thread of the queue pairs that draw from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokamak::verbs::ibv {

class SharedSlots final {
 public:
  explicit SharedSlots(uint32_t depth);

  uint32_t depth() const { return depth_; }

  // The slot of the next receive; false when there is none, or no room. Back undoes the latest
  // Takes, the last one first.
  [[nodiscard]] bool Take(uint64_t id, uint32_t* slot);
  void Back(uint32_t slot);

  // Its completion is handed out, or never will be. Returns the id.
  uint64_t Release(uint32_t slot);

 private:
  struct Slot {
    uint64_t id = 0;
    uint64_t order = 0;
  };

  const uint32_t depth_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  uint64_t posted_ = 0;
  uint64_t released_ = 0;  // by the latest completion
};

}  // namespace tokamak::verbs::ibv

// SharedSlots are the receives posted to a shared receive queue and not polled yet.
//
// The device takes receives in order and finishes them in any order, so each has a slot, whose
// number is its wr_id, until its own completion was polled. Room is counted by the latest polled
// one, see verbs.h; so there are twice as many slots as the queue is deep, and a slow receive does
// not hold up the others.
//
// Some providers drop a queue pair's completions with it. A queue pair finishes its receives in the
// order in which it took them, so it holds none from before the latest that it finished. A receive
// that no queue pair can hold was lost with one that is gone, and its slot is free.
//
// Law: a receive that a queue pair may still finish keeps its slot.
// Thread rule: the thread of the queue pairs that draw from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tokamak::verbs::ibv {

class SharedSlots final {
 public:
  explicit SharedSlots(uint32_t depth);

  uint32_t depth() const { return depth_; }

  // Takes the next receive's slot; returns false if there is none, or no room. Back undoes the
  // latest Takes, last first.
  [[nodiscard]] bool Take(uint64_t id, uint32_t* slot);
  void Back(uint32_t slot);

  // A queue pair draws from now on, or again after a reset.
  void AddOwner(uint32_t number);
  // A queue pair is gone, and all of its completions that were not lost have been released.
  void RemoveOwner(uint32_t number);

  // The completion of this slot, from queue pair `owner`, is handed out or forgotten. Returns the
  // id; none if nothing is posted there.
  std::optional<uint64_t> Release(uint32_t slot, uint32_t owner);

 private:
  struct Slot {
    uint64_t id = 0;
    uint64_t order = 0;
    bool taken = false;
  };

  void Reclaim();

  const uint32_t depth_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  uint64_t posted_ = 0;
  uint64_t released_ = 0;                // by the latest completion
  std::map<uint32_t, uint64_t> owners_;  // the first order that each may hold
};

}  // namespace tokamak::verbs::ibv

// WorkRing is the requests posted to one queue and not polled yet: the program's ids, and so how
// much room is left.
//
// A request's wr_id is its position, so a completion also frees the unsignaled requests before it.
// Depths are strict: providers round them up, we do not.
//
// Law: posted() - released() <= depth().
// Thread rule: the queue pair's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tokamak::verbs::ibv {

// Marks the wr_id of receives; the rest is the position, or the slot of a shared queue.
constexpr uint64_t kReceiveMark = uint64_t{1} << 63;

// How a provider's success is reported to the program.
enum class Telling : uint8_t {
  kAsIs,
  kNothing,  // it did not ask for a completion
  kRead,     // a READ: the provider was given another request for it
};

class WorkRing final {
 public:
  explicit WorkRing(uint32_t depth) : depth_(depth), entries_(PowerOfTwo(depth)), mask_(entries_.size() - 1) {}

  uint32_t depth() const { return depth_; }
  uint64_t posted() const { return posted_; }
  uint64_t released() const { return released_; }
  uint32_t room() const { return depth_ - static_cast<uint32_t>(posted_ - released_); }

  // Notes the id of the request `ahead` after the last one posted (ahead < room()), and returns its
  // position; Commit posts the first `count` of those noted.
  uint64_t Note(uint32_t ahead, uint64_t id, Telling telling = Telling::kAsIs) {
    const uint64_t position = posted_ + ahead;
    entries_[position & mask_] = {id, telling};
    return position;
  }
  void Commit(uint32_t count) { posted_ += count; }

  // True if posted, not released.
  bool Holds(uint64_t position) const { return position >= released_ && position < posted_; }
  uint64_t id(uint64_t position) const { return entries_[position & mask_].id; }
  Telling telling(uint64_t position) const { return entries_[position & mask_].telling; }

  // The completion at `position` was polled: it and all before it are free.
  void Release(uint64_t position) { released_ = std::max(released_, position + 1); }

  void Clear() { released_ = posted_; }

 private:
  struct Entry {
    uint64_t id = 0;
    Telling telling = Telling::kAsIs;
  };

  static size_t PowerOfTwo(uint32_t at_least) {
    size_t power = 1;
    while (power < at_least) power *= 2;
    return power;
  }

  const uint32_t depth_;
  std::vector<Entry> entries_;
  const uint64_t mask_;
  uint64_t posted_ = 0;
  uint64_t released_ = 0;
};

}  // namespace tokamak::verbs::ibv

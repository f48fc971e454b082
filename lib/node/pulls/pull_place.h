// PullPlace is the room in the store for the copy that a pull brings.
//
//   none --Reserve--> reserved --Seal--> sealed
//     ^                  |
//     +-----GiveUp-------+
//
//Law: a copy is created, pinned, and sealed or aborted only while nobody else may touch its
//     memory. The pin keeps that memory in place even if the copy is aborted.
// When a transfer is cut, the bytes that have certainly arrived are kept for the next one. Thread
// rule: the node's control loop; the engine counts moved().
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/directory/directory.h"
#include "lib/store/store.h"

namespace tokamak::node {

class PullPlace final {
 public:
  // `store` must outlive it.
  PullPlace(store::Store& store, const base::ObjectId& id) : store_(store), id_(id), owner_(store.NewOwner()) {}
  ~PullPlace() { GiveUp(); }
  PullPlace(const PullPlace&) = delete;
  PullPlace& operator=(const PullPlace&) = delete;

  // Makes room for the object that `info` describes. Errors as Store::CreateCopy's; they change
  // nothing.
  [[nodiscard]] absl::Status Reserve(const directory::LocatedObject& info);
  bool reserved() const { return place_.has_value(); }

  // The whole object; only while reserved.
  absl::Span<uint8_t> memory() { return store_.Memory(*place_); }
  uint64_t size() const { return place_.has_value() ? place_->total_size() : 0; }

  // Bytes that have arrived by now; the engine counts them while the object moves.
  std::atomic<uint64_t>& moved() { return moved_; }
  uint64_t moved_bytes() const { return moved_.load(std::memory_order_relaxed); }

  // Notes that a transfer ended early with the first `arrived` bytes certainly right. Keeps them
  // for the next transfer if they are some but not all.
  void Cut(uint64_t arrived);
  uint64_t arrived() const { return arrived_; }

  // Makes the complete object visible, for good, and gives its pin back.
  void Seal();
  // Gives the reserved room back, if any.
  void GiveUp();

 private:
  store::Store& store_;
  const base::ObjectId id_;
  const store::Owner owner_;
  std::optional<store::Location> place_;  // of the copy, unsealed and pinned
  uint64_t arrived_ = 0;                  // bytes from the start, left by a transfer that was cut
  std::atomic<uint64_t> moved_{0};
};

}  // namespace tokamak::node

// PullPlace is the room in the store for the copy that a pull brings.
//
//   none --Reserve--> reserved --Seal--> sealed
//     ^                  |
//     +-----GiveUp-------+
//
// Law: a copy is created, pinned, and sealed or aborted only while nobody else may touch its
// memory, which its pin keeps in place even if aborted. A cut transfer's bytes are kept for the
// next. Thread rule: the control loop; the engine counts moved().
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

  // Errors as Store::CreateCopy's; they change nothing.
  [[nodiscard]] absl::Status Reserve(const directory::LocatedObject& info);
  bool reserved() const { return place_.has_value(); }

  // Requires reserved().
  absl::Span<uint8_t> memory() { return store_.Memory(*place_); }
  uint64_t size() const { return place_.has_value() ? place_->total_size() : 0; }

  // Bytes arrived so far.
  std::atomic<uint64_t>& moved() { return moved_; }
  uint64_t moved_bytes() const { return moved_.load(std::memory_order_relaxed); }

  // Notes an early end with the first `arrived` bytes certainly right; keeps them if some but not
  // all.
  void Cut(uint64_t arrived);
  uint64_t arrived() const { return arrived_; }

  // Makes the complete object visible, and gives its pin back.
  void Seal();
  void GiveUp();

 private:
  store::Store& store_;
  const base::ObjectId id_;
  const store::Owner owner_;
  std::optional<store::Location> place_;  // unsealed and pinned
  uint64_t arrived_ = 0;                  // from the start, of a cut transfer
  std::atomic<uint64_t> moved_{0};
};

}  // namespace tokamak::node

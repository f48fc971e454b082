// Waits holds the pending gets and waits: each knows the objects it lacks and its deadline.
//
// A get pins each object as it appears, so that none is evicted meanwhile; the pins pass to the
// asker with the answer.
// Law: a callback runs at most once, from a posted task, and after it the wait holds nothing.
// Thread rule: the store's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/object_id.h"
#include "lib/store/types.h"

namespace tokamak::store {

class Store;

// `location`, pinned once for the owner, is empty if the object was not sealed in time, or
// `refused` beyond the owner's quota.
struct GetEntry {
  base::ObjectId id;
  std::optional<Location> location;
  absl::Status refused;
};

// The span is valid during the call.
using GetCallback = std::function<void(absl::Span<const GetEntry> entries)>;
using WaitCallback = std::function<void(std::vector<bool> sealed)>;

class Waits final {
 public:
  // Both must outlive it.
  Waits(Store& store, base::EventLoop& loop) : store_(store), loop_(loop) {}
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  // See Store::GetLater and Store::WaitLater.
  base::Pending Get(absl::Span<const base::ObjectId> ids, base::Time deadline, Owner who, GetCallback callback);
  base::Pending Wait(absl::Span<const base::ObjectId> ids, size_t count, base::Time deadline, WaitCallback callback);

  // Has each get that waits for `id` pin it.
  void Sealed(const base::ObjectId& id);

  // Ends all gets of `who` without an answer.
  void DropOwner(Owner who);

  size_t size() const { return waiting_.size(); }

 private:
  class Waiting;
  struct Listed {
    base::Link<Listed> link;
  };
  using List = base::IntrusiveList<Listed, &Listed::link>;
  using Place = std::tuple<base::ObjectId, uint64_t, size_t>;  // object, number of the wait, index in it

  base::Pending Start(absl::Span<const base::ObjectId> ids, size_t needed, base::Time deadline,
                      std::optional<Owner> who, GetCallback callback);

  Store& store_;
  base::EventLoop& loop_;
  uint64_t next_number_ = 0;
  List waiting_;  // oldest first
  absl::btree_map<Place, Waiting*> lacking_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::store

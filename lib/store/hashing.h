// Hashing hashes whole objects, pinned meanwhile, a slice at a time.
//
// Each owner has one hash under way; owners take turns, slice by slice.
// Thread rule: the store's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "absl/status/statusor.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/object_id.h"
#include "lib/store/types.h"

namespace tokamak::store {

class Store;

using HashCallback = std::function<void(absl::StatusOr<uint64_t> hash)>;

class Hashing final {
 public:
  // Both must outlive it; it pins as `pinner`.
  Hashing(Store& store, base::EventLoop& loop, Owner pinner) : store_(store), loop_(loop), pinner_(pinner) {}
  Hashing(const Hashing&) = delete;
  Hashing& operator=(const Hashing&) = delete;

  // See Store::HashLater.
  base::Pending Start(const base::ObjectId& id, Owner who, HashCallback callback);

 private:
  class Job;
  struct Listed {
    base::Link<Listed> link;
  };
  using Jobs = base::IntrusiveList<Listed, &Listed::link>;

  void NextSlice();
  void Remove(Job& job);

  Store& store_;
  base::EventLoop& loop_;
  const Owner pinner_;
  std::map<Owner, Jobs> jobs_;  // in the order requested
  Owner last_{};                // of the last slice
  base::Timer turn_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::store

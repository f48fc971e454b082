// Hashing reads whole objects a slice at a time, so that no task holds the loop for long. The object is pinned meanwhile.
//
// Not thread-safe: the store's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/btree_set.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/object_id.h"
#include "lib/store/types.h"

namespace tokamak::store {

class Store;

using HashCallback = std::function<void(absl::StatusOr<uint64_t> hash)>;

class Hashing final {
 public:
  // Both must outlive it; it pins as `who`.
  Hashing(Store& store, base::EventLoop& loop, Owner who) : store_(store), loop_(loop), who_(who) {}
  ~Hashing();
  Hashing(const Hashing&) = delete;
  Hashing& operator=(const Hashing&) = delete;

  // See Store::HashLater.
  std::unique_ptr<Handle> Start(const base::ObjectId& id, HashCallback callback);

 private:
  class Job;

  Store& store_;
  base::EventLoop& loop_;
  const Owner who_;
  absl::btree_set<Job*> jobs_;  // only to orphan them, in any order
};

}  // namespace tokamak::store

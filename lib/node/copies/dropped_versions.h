// DroppedVersions remembers the contents that this node had to drop, lest a pull asked for before
// bring one back.
//
// Bound: the latest kMaxDropped, which outlast every call of their time. Thread rule: the control
// loop.
#pragma once

#include <cstddef>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "lib/base/generation.h"

namespace tokamak::node {

class DroppedVersions final {
 public:
  static constexpr size_t kMaxDropped = 65536;

  void Remember(const base::ObjectVersion& version) {
    if (!versions_.insert(version).second) return;
    order_.push_back(version);
    if (order_.size() <= kMaxDropped) return;
    versions_.erase(order_.front());
    order_.pop_front();
  }

  bool Contains(const base::ObjectVersion& version) const { return versions_.contains(version); }

 private:
  absl::flat_hash_set<base::ObjectVersion> versions_;  // never iterated
  std::deque<base::ObjectVersion> order_;
};

}  // namespace tokamak::node

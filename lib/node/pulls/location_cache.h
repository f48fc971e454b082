// LocationCache remembers where objects were: gets of recently located ones do not wait for the
// directory, and go on while it is away.
//
// Entries are hints: the holder is the authority. Bound: the latest kMaxEntries. Thread rule: the
// control loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "lib/directory/directory.h"

namespace tokamak::node {

class LocationCache final {
 public:
  static constexpr size_t kMaxEntries = 65536;
  static constexpr base::Duration kFresh = base::Seconds(1);  // used without asking first

  void Remember(const base::ObjectId& id, const directory::LocatedObject& info, base::Time now) {
    Entry& entry = entries_[id];
    entry.info = info;
    entry.info.contents = {};
    entry.at = now;
    entry.number = ++last_number_;
    order_.emplace_back(id, entry.number);
    while (entries_.size() > kMaxEntries || order_.size() > 2 * kMaxEntries) ForgetOldest();
  }

  // Returns nullptr if unknown; valid until the next call.
  const directory::LocatedObject* Find(const base::ObjectId& id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second.info;
  }
  const directory::LocatedObject* FindFresh(const base::ObjectId& id, base::Time now) const {
    const auto found = entries_.find(id);
    return found == entries_.end() || now - found->second.at > kFresh ? nullptr : &found->second.info;
  }

  void Forget(const base::ObjectId& id) { entries_.erase(id); }

  void ForgetHolder(const base::ObjectId& id, const directory::NodeId& holder) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    std::vector<directory::NodeId>& holders = found->second.info.holders;
    holders.erase(std::remove(holders.begin(), holders.end(), holder), holders.end());
    if (holders.empty()) entries_.erase(found);
  }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    directory::LocatedObject info;
    base::Time at;
    uint64_t number = 0;
  };

  void ForgetOldest() {
    const auto [id, number] = order_.front();
    order_.pop_front();
    const auto found = entries_.find(id);
    if (found != entries_.end() && found->second.number == number) entries_.erase(found);
  }

  absl::flat_hash_map<base::ObjectId, Entry> entries_;  // never iterated
  std::deque<std::pair<base::ObjectId, uint64_t>> order_;
  uint64_t last_number_ = 0;
};

}  // namespace tokamak::node

// Deletions remember what was deleted: while nodes may still hold it, and among the latest
// tombstones after that.
//
// A deletion is under way while some life may hold the deleted generation and has not confirmed
// that it does not. Lives that are gone do not count, and are taken out when a deletion is looked
// at, or by Forget. After the last one it is a tombstone.
//
// Deletions are counted as they end. A node that was told of the first N may have missed one that
// nobody can tell it of any more only if more than N have been forgotten.
//
// Thread rule: the directory's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/directory/directory.h"
#include "lib/directory/members.h"

namespace tokamak::directory {

class Deletions final {
 public:
  static constexpr size_t kForgottenAtOnce = 1000;  // confirmations of those gone that one step enters

  // Remembers the latest `most_tombstones`, at least 1. `members` must outlive it.
  Deletions(const Members& members, size_t most_tombstones) : members_(members), most_tombstones_(most_tombstones) {}
  Deletions(const Deletions&) = delete;
  Deletions& operator=(const Deletions&) = delete;

  // Deletes `version` from these lives, which may be none. `provisional`: as the object was.
  void Begin(const base::ObjectVersion& version, bool provisional, std::set<uint64_t> members);

  // This life may hold a generation whose deletion is under way after all.
  void Add(const base::ObjectVersion& version, uint64_t member);

  // This life does not hold the generation. Nothing where it is not asked for.
  void Confirm(const base::ObjectVersion& version, uint64_t member);

  bool UnderWay(const base::ObjectVersion& version) { return Pending(version) != nullptr; }
  bool Finished(const base::ObjectVersion& version) const { return tombstones_.contains(version); }

  // A deletion of `id` that is under way; kNoGeneration: there is none.
  base::Generation FindUnderWay(const base::ObjectId& id);

  // Whether a generation that an earlier directory accepted may have `id`, though it is not free
  // for others: all that is being deleted would have been displaced by it.
  bool OnlyProvisionalUnderWay(const base::ObjectId& id);

  // The lives that have not confirmed; null: it is not under way.
  const std::set<uint64_t>* Pending(const base::ObjectVersion& version);

  // What this life has not confirmed, at most `most`: those after `after` first, so that a node
  // that keeps asking hears of all.
  std::vector<base::ObjectVersion> DropsOf(uint64_t member, const base::ObjectVersion& after, size_t most) const;

  // This life is gone: it confirms by that, in steps.
  void Gone(uint64_t member) { gone_.push_back(member); }
  // Returns whether there is more.
  bool Forget();

  uint64_t finished() const { return finished_; }
  uint64_t forgotten() const { return finished_ - tombstone_order_.size(); }  // the first of those

  size_t under_way() const { return under_way_.size(); }
  size_t tombstones() const { return tombstones_.size(); }

 private:
  struct Deletion {
    bool provisional = false;
    std::set<uint64_t> pending;
  };
  using UnderWayMap = std::map<base::ObjectVersion, Deletion>;

  // The first deletion of `id` that is still under way.
  UnderWayMap::iterator First(const base::ObjectId& id);

  // Without those that are gone. False: with that it has finished, and is no longer there.
  bool StillUnderWay(UnderWayMap::iterator deletion);
  void Finish(UnderWayMap::iterator deletion);

  const Members& members_;
  const size_t most_tombstones_;
  UnderWayMap under_way_;
  std::set<std::pair<uint64_t, base::ObjectVersion>> drops_;  // the same, by life
  std::deque<uint64_t> gone_;                                 // to be forgotten
  absl::flat_hash_set<base::ObjectVersion> tombstones_;       // never visited in its own order
  std::deque<base::ObjectVersion> tombstone_order_;           // the oldest first
  uint64_t finished_ = 0;
};

}  // namespace tokamak::directory

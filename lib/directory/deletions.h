// Deletions remembers deleted generations while nodes may still hold them, and the latest as
// tombstones after that.
//
// A deletion is under way while some life that is not gone may hold the generation and has not
// confirmed that it does not.
//
// Deletions are counted as they end: a node that knows the first N may have missed a forgotten one
// only if more than N have been forgotten.
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
  static constexpr size_t kForgottenAtOnce = 1000;  // confirmations for gone lives in a step

  // `most_tombstones`: at least 1. `members` must outlive it.
  Deletions(const Members& members, size_t most_tombstones) : members_(members), most_tombstones_(most_tombstones) {}
  Deletions(const Deletions&) = delete;
  Deletions& operator=(const Deletions&) = delete;

  // `members`: lives, perhaps none.
  void Begin(const base::ObjectVersion& version, bool provisional, std::set<uint64_t> members);

  // Adds a life that may hold a generation under deletion.
  void Add(const base::ObjectVersion& version, uint64_t member);

  // This life does not hold the generation.
  void Confirm(const base::ObjectVersion& version, uint64_t member);

  bool UnderWay(const base::ObjectVersion& version) { return Pending(version) != nullptr; }
  bool Finished(const base::ObjectVersion& version) const { return tombstones_.contains(version); }

  // Returns a deletion of `id` that is under way, or kNoGeneration.
  base::Generation FindUnderWay(const base::ObjectId& id);

  // Returns true if an established generation may take `id` during its deletions: it would have
  // displaced each of them.
  bool OnlyProvisionalUnderWay(const base::ObjectId& id);

  // Returns the lives that have not confirmed; null: not under way.
  const std::set<uint64_t>* Pending(const base::ObjectVersion& version);

  // Returns deletions not confirmed by this life, first those after `after`.
  std::vector<base::ObjectVersion> DropsOf(uint64_t member, const base::ObjectVersion& after, size_t most) const;

  // Counts as the confirmation of a gone life.
  void Gone(uint64_t member) { gone_.push_back(member); }
  // Takes one step. Returns true if there is more.
  bool Forget();

  uint64_t finished() const { return finished_; }
  uint64_t forgotten() const { return finished_ - tombstone_order_.size(); }  // first of the finished

  size_t under_way() const { return under_way_.size(); }
  size_t tombstones() const { return tombstones_.size(); }

 private:
  struct Deletion {
    bool provisional = false;
    std::set<uint64_t> pending;
  };
  using UnderWayMap = std::map<base::ObjectVersion, Deletion>;

  UnderWayMap::iterator First(const base::ObjectId& id);

  // Takes out gone lives. Returns false if the deletion has finished by that and is erased.
  bool StillUnderWay(UnderWayMap::iterator deletion);
  void Finish(UnderWayMap::iterator deletion);

  const Members& members_;
  const size_t most_tombstones_;
  UnderWayMap under_way_;
  std::set<std::pair<uint64_t, base::ObjectVersion>> drops_;  // by life
  std::deque<uint64_t> gone_;
  absl::flat_hash_set<base::ObjectVersion> tombstones_;  // never iterated
  std::deque<base::ObjectVersion> tombstone_order_;      // oldest first
  uint64_t finished_ = 0;
};

}  // namespace tokamak::directory

// ObjectTable is the list of what exists: one record for each id, its state, who pins it, and what
// each program holds.
//
// It knows nothing of memory or eviction. Iteration is by id, so two runs of one seed see the same
// order.
//
// Law: a record's state changes in Enter() only, along the arrows of types.h.
// Law: a record leaves the table only when it has ended (evicted, deleted, aborted) and nobody pins
// it.
// Not thread-safe: the store's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "lib/base/object_id.h"
#include "lib/store/allocator.h"
#include "lib/store/programs.h"
#include "lib/store/types.h"

namespace tokamak::store {

// One object. The address of a record is stable while it is in the table.
struct Object {
  StoredObject info;
  Owner creator{};                       // may seal or abort it
  Programs::Account* account = nullptr;  // of the creator's program
  Allocation allocation;                 // its memory; may be larger than the object
  std::optional<Owner> quarantine;       // may be written to until this keeper says that it is not
  Object* older = nullptr;               // neighbours in a list of EvictionOrder
  Object* newer = nullptr;
  uint64_t last_use = 0;  // later ones have higher numbers

  bool sealed() const { return info.state == State::kSealed; }
  // Deleted or aborted, and kept only for those who still pin it.
  bool lingers() const { return info.state != State::kCreated && info.state != State::kSealed; }
};

class ObjectTable final {
 public:
  ObjectTable() = default;
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  // The record of `id`, lingering ones included; nullptr when there is none.
  Object* Find(const base::ObjectId& id);
  const Object* Find(const base::ObjectId& id) const;

  // A new record in state kCreated. The id must be free.
  Object& Insert(StoredObject info, Owner creator, const Allocation& allocation);

  // The only place where a state changes. A step that types.h does not draw is a CHECK.
  void Enter(Object& object, State state);

  // A copy counts as created here from now on.
  void Keep(Object& object);

  // Takes an ended, unpinned record out of the table and destroys it.
  void Erase(Object& object);

  // One pin more for `who`. The same owner may pin several times.
  void Pin(Object& object, Owner who);

  // One pin less. Returns false, changing nothing, when `who` has none.
  [[nodiscard]] bool Unpin(Object& object, Owner who);

  // What `who` holds, by id. A pin that was taken n times is listed n times.
  std::vector<base::ObjectId> PinnedBy(Owner who) const;
  std::vector<base::ObjectId> UnsealedOf(Owner who) const;

  // The records after `id`, at most `limit`, by id; with no `id`, from the first.
  std::vector<const Object*> List(const base::ObjectId* after, size_t limit) const;

  // Who holds the memory. Owners join and leave; what they hold is counted here.
  Programs& programs() { return programs_; }
  const Programs& programs() const { return programs_; }

  // Whether `who` has a pin on it.
  bool IsPinnedBy(const Object& object, Owner who) const { return pins_.contains({who, object.info.id}); }

  // Of Statistics: what concerns objects, states and pins. Fills nothing else.
  const Statistics& counts() const { return counts_; }

  // For tests: counts everything again and says what is wrong.
  absl::Status CheckConsistency() const;

 private:
  using Claim = std::pair<Owner, base::ObjectId>;

  void Count(const Object& object, int64_t sign);

  Programs programs_;
  absl::btree_map<base::ObjectId, std::unique_ptr<Object>> objects_;
  absl::btree_map<Claim, uint64_t> pins_;
  absl::btree_set<Claim> unsealed_;
  Statistics counts_;
};

}  // namespace tokamak::store

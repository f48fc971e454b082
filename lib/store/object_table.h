// ObjectTable lists the objects: one record for each id, with its state, its pins, and the account
// of each program.
//
// Iteration is by id, the same for two runs of one seed.
//
// Law: a record's state changes only in Enter(), along the arrows of types.h.
// Law: a record leaves the table only when it has ended and is unpinned.
// Thread rule: the store's loop.
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

// At a stable address while in the table.
struct Object {
  StoredObject info;
  Owner creator{};                       // may seal or abort it
  Programs::Account* account = nullptr;  // of the creator's program
  Allocation allocation;                 // may be larger than the object
  std::optional<Owner> quarantine;       // keeper that may still write to it
  Object* older = nullptr;               // neighbours in EvictionOrder
  Object* newer = nullptr;
  uint64_t last_use = 0;  // higher is later

  bool sealed() const { return info.state == State::kSealed; }
  // Deleted or aborted, but still pinned.
  bool lingers() const { return info.state != State::kCreated && info.state != State::kSealed; }
};

class ObjectTable final {
 public:
  ObjectTable() = default;
  ObjectTable(const ObjectTable&) = delete;
  ObjectTable& operator=(const ObjectTable&) = delete;

  // Finds lingering ones too; null: none.
  Object* Find(const base::ObjectId& id);
  const Object* Find(const base::ObjectId& id) const;

  // The id must be free.
  Object& Insert(StoredObject info, Owner creator, const Allocation& allocation);

  // CHECKs that types.h draws the step.
  void Enter(Object& object, State state);

  // Counts a copy as created here.
  void Keep(Object& object);

  // It has ended and is unpinned.
  void Erase(Object& object);

  // An owner may pin several times.
  void Pin(Object& object, Owner who);

  // Returns false, changing nothing, when `who` has no pin.
  [[nodiscard]] bool Unpin(Object& object, Owner who);

  // Returns objects by id, once for each pin.
  std::vector<base::ObjectId> PinnedBy(Owner who) const;
  std::vector<base::ObjectId> UnsealedOf(Owner who) const;

  // Returns at most `limit` records after `id` (null: from the first), by id.
  std::vector<const Object*> List(const base::ObjectId* after, size_t limit) const;

  Programs& programs() { return programs_; }
  const Programs& programs() const { return programs_; }

  bool IsPinnedBy(const Object& object, Owner who) const { return pins_.contains({who, object.info.id}); }

  // Objects, states and pins alone.
  const Statistics& counts() const { return counts_; }

  // For tests.
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

// ObjectEntries records for each object of a local directory the live generation, its sizes, and
// its holders.
//
// A holder has the object, or is coming. Gone lives do not count: Forget takes them out, and a look
// at an entry, up to the first that is not gone. An entry without holders does not exist.
// Law: the cost of looking at an entry does not depend on the number of its holders.
// Thread rule: the directory's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lib/base/generation.h"
#include "lib/base/object_id.h"
#include "lib/base/text/object_name.h"
#include "lib/directory/directory.h"
#include "lib/directory/members.h"

namespace tokamak::directory {

// One life that may have a copy.
struct Holder {
  uint64_t member : 63;
  uint64_t has : 1;  // else it is coming
};

struct ObjectEntry {
  base::Generation generation = base::kNoGeneration;
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  bool fresh = false;                      // no earlier directory can have accepted it
  bool provisional = false;                // accepted while learning: an older content displaces it
  uint32_t turn = 0;                       // of the holder to name first
  absl::InlinedVector<Holder, 2> holders;  // by number
  base::ObjectName name;
};

class ObjectEntries final {
 public:
  // Entries per step; kHoldersAsOne holders count as one more.
  static constexpr size_t kForgottenAtOnce = 1000;
  static constexpr size_t kHoldersAsOne = 8;

  // `members` must outlive it.
  explicit ObjectEntries(const Members& members) : members_(members) {}
  ObjectEntries(const ObjectEntries&) = delete;
  ObjectEntries& operator=(const ObjectEntries&) = delete;

  // Returns null if the object has no holder.
  ObjectEntry* Find(const base::ObjectId& id);

  // The id is free; the first holder must be entered.
  ObjectEntry& Add(const base::ObjectVersion& version, uint64_t data_size, uint64_t metadata_size);

  // The entry must exist.
  ObjectEntry Extract(const base::ObjectId& id);

  // Returns null if this life is no holder.
  static Holder* FindHolder(ObjectEntry& entry, uint64_t member);

  // Enters a holder, or that a coming one has the object; never the other way round.
  static void Enter(ObjectEntry& entry, uint64_t member, bool has);

  // With its last holder the entry ends.
  void Remove(const base::ObjectId& id, uint64_t member);

  // True if a live node has the object; nodes that it is coming to do not count.
  bool IsHeld(const ObjectEntry& entry) const;

  // Returns sizes, name and the live holders that have it; if they are too many, all in turn.
  LocatedObject Name(ObjectEntry& entry) const;

  // Returns at most `most` objects that this life has or is coming to, of a part of all entries,
  // after `looked_at` (nothing: the beginning), which moves to where the next part begins (nothing:
  // the end).
  std::vector<base::ObjectVersion> HeldBy(uint64_t member, size_t most, std::optional<base::ObjectId>* looked_at) const;

  // Takes gone holders out of a part of all entries. Returns true if there are more.
  bool Forget(bool first);

  size_t size() const { return entries_.size(); }

 private:
  // Returns null if this holder cannot be named.
  const Member* Alive(const Holder& holder) const;
  bool IsGone(const Holder& holder) const { return members_.Find(holder.member) == nullptr; }

  const Members& members_;
  std::map<base::ObjectId, ObjectEntry> entries_;
  base::ObjectId forgotten_;  // up to here
};

}  // namespace tokamak::directory

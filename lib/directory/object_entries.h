// ObjectEntries say for each object of a local directory which generation is live, how large it is,
// and who holds it.
//
// A holder has the object, or is coming: it was told where the object is, in order to pull it.
// Lives that are gone do not count, and are taken out by Forget; of an entry that is looked at
// those before the first that is not gone are. An entry without holders does not exist.
// Law: to look at an entry costs the same however many hold it.
//
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
  bool fresh = false;        // no directory before this one can have accepted it
  bool provisional = false;  // accepted when the directory had yet to learn what is older: such a content displaces it
  uint32_t turn = 0;         // the holder at this place is named first
  absl::InlinedVector<Holder, 2> holders;  // by number
  base::ObjectName name;
};

class ObjectEntries final {
 public:
  // Entries that one step looks at; HeldBy as well. One with many holders counts as several.
  static constexpr size_t kForgottenAtOnce = 1000;
  static constexpr size_t kHoldersAsOne = 8;

  // `members` must outlive it.
  explicit ObjectEntries(const Members& members) : members_(members) {}
  ObjectEntries(const ObjectEntries&) = delete;
  ObjectEntries& operator=(const ObjectEntries&) = delete;

  // Null: nobody holds the object, nor is coming.
  ObjectEntry* Find(const base::ObjectId& id);

  // An entry of which the first holder is about to be entered. There must be none of the id.
  ObjectEntry& Add(const base::ObjectVersion& version, uint64_t data_size, uint64_t metadata_size);

  // Takes the entry out, which must exist.
  ObjectEntry Extract(const base::ObjectId& id);

  // Null: this life is no holder.
  static Holder* FindHolder(ObjectEntry& entry, uint64_t member);

  // Enters a holder, or notes that one who was coming has the object now; never the other way
  // round.
  static void Enter(ObjectEntry& entry, uint64_t member, bool has);

  // No longer a holder; with its last holder the entry ends.
  void Remove(const base::ObjectId& id, uint64_t member);

  // Whether somebody who is alive has it.
  bool IsHeld(const ObjectEntry& entry) const;

  // For an answer: sizes and name, and those alive that have it. Where they are more than can be named,
  // the next answer begins where this one ended, so that all are named in turn.
  LocatedObject Name(ObjectEntry& entry) const;

  // What this life has or is coming to, at most `most`, of a part of all entries: those after
  // `looked_at`, from the beginning where that is nothing. It is then where the next part begins;
  // nothing: there are no more.
  std::vector<base::ObjectVersion> HeldBy(uint64_t member, size_t most, std::optional<base::ObjectId>* looked_at) const;

  // Takes out those that are gone: a part of all entries, from the beginning where `first` is set.
  // Returns whether there are more.
  bool Forget(bool first);

  size_t size() const { return entries_.size(); }

 private:
  // Null: this holder cannot be named.
  const Member* Alive(const Holder& holder) const;
  bool IsGone(const Holder& holder) const { return members_.Find(holder.member) == nullptr; }

  const Members& members_;
  std::map<base::ObjectId, ObjectEntry> entries_;
  base::ObjectId forgotten_;  // up to here
};

}  // namespace tokamak::directory

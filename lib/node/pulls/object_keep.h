// ObjectKeep is one object that a leaving node asks this one to keep: it is pulled as for a program
// of this node, the directory knows of it, and it is never evicted.
//
// It answers as soon as it can, with a reason: a leaving node has little time, asks the next one,
// and may ask again later. It waits only for the bytes and the directory's answer: not for room,
// not for an id in use, not for deleted objects.
// Law: kKept is answered only for an object that is sealed here, kept, and known to the directory,
// so that a deletion finds it.
// Law: a node that leaves itself keeps nothing for others.
// Law: kept objects leave a part of the store to this node's programs: they are never evicted, and
// any peer can ask for it.
//
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/node/calls/object_messages.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/copies/dropped_versions.h"
#include "lib/node/pulls/pull_table.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"

namespace tokamak::node {

class ObjectKeep final : public base::Handle {
 public:
  // The programs' part of the store is one in this many; it is not used to keep objects for others.
  static constexpr uint64_t kPartOfPrograms = 16;

  // All references must outlive it.
  struct Needs {
    base::EventLoop& loop;
    store::Store& store;
    PullTable& pulls;
    Membership& membership;
    const DroppedVersions& dropped;
    const size_t& evacuations;  // of this node, under way
    base::Duration deadline;    // of a question to the directory
  };

  // May answer at once; then it has nothing left to do and may be dropped.
  ObjectKeep(const Needs& needs, const KeepRequest& request, transport::Reply reply);

 private:
  bool leaving() const { return needs_.evacuations > 0 || needs_.membership.left(); }
  bool IsHere() const;
  // Returns true if the programs keep their part of the store beside an object of that size.
  bool LeavesRoom(uint64_t data_size, uint64_t metadata_size) const;
  void Try();
  KeepAnswer WhyNot() const;
  void Pulled(const absl::Status& status);
  void KeepWhenAnnounced();
  void Keep(const absl::Status& announced);
  void Say(KeepAnswer answer) { reply_(EncodeKeepAnswer(answer)); }

  const Needs needs_;
  const KeepRequest request_;
  const transport::Reply reply_;
  base::Pending step_;  // the pull, then the question to the directory
};

}  // namespace tokamak::node

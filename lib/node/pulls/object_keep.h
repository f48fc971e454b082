// ObjectKeep is one object that a node which leaves asks this one to keep: it is pulled as for a
// program of this node, the directory knows of it, and it is never evicted.
//
// It answers as soon as it can tell, with a reason: a node that leaves has little time, asks the
// next one, and asks again when it likes. Nothing is waited for here but the bytes and the
// directory's word: not what was deleted, not room, not an id that is in use.
// Law: kKept is said of what is sealed here, kept, and known to the directory: a deletion finds it.
// Law: a node that leaves itself keeps nothing for others.
// Law: what is kept for others leaves a part of the store to this node's programs: it is never
// evicted, and whoever is a peer can ask for it.
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
  // Beyond this nothing is kept for others: the 16th part of the store is what its programs may have.
  static constexpr uint64_t kPartOfPrograms = 16;

  // What it works with. All references must outlive it.
  struct Services {
    base::EventLoop& loop;
    store::Store& store;
    PullTable& pulls;
    Membership& membership;
    const DroppedVersions& dropped;
    const size_t& evacuations;  // of this node, under way
    base::Duration deadline;    // of a question to the directory
  };

  // May answer at once; then there is nothing to wait for, and it may be dropped.
  ObjectKeep(const Services& services, const KeepRequest& request, transport::Reply reply);

 private:
  bool leaving() const { return services_.evacuations > 0 || services_.membership.left(); }
  bool IsHere() const;
  // Whether the programs have their part of the store beside an object of that size.
  bool LeavesRoom(uint64_t data_size, uint64_t metadata_size) const;
  void Try();
  KeepAnswer WhyNot() const;
  void Pulled(const absl::Status& status);
  void KeepWhenAnnounced();
  void Keep(const absl::Status& announced);
  void Say(KeepAnswer answer) { reply_(EncodeKeepAnswer(answer)); }

  const Services services_;
  const KeepRequest request_;
  const transport::Reply reply_;
  base::Pending step_;  // the pull, then the directory's word
};

}  // namespace tokamak::node

// ObjectKeep is one object that a leaving node asks this one to keep: pulled as for a program here,
// known to the directory, and never evicted.
//
// Answers as soon as it can, with a reason: it waits for the bytes and the directory, not for room,
// an id in use or a deletion.
// Law: kKept means sealed here, kept, and known to the directory.
// Law: a leaving node keeps nothing for others.
// Law: kept objects, which any peer can ask for, leave a part of the store to this node's programs.
//
// Thread rule: the control loop.
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
  // The programs' part of the store is one in this many.
  static constexpr uint64_t kPartOfPrograms = 16;

  // All references must outlive it.
  struct Needs {
    base::EventLoop& loop;
    store::Store& store;
    PullTable& pulls;
    Membership& membership;
    const DroppedVersions& dropped;
    const size_t& evacuations;  // of this node, under way
    base::Duration deadline;    // of each question
  };

  // May answer at once, and may be dropped then.
  ObjectKeep(const Needs& needs, const KeepRequest& request, transport::Reply reply);

 private:
  bool leaving() const { return needs_.evacuations > 0 || needs_.membership.left(); }
  bool IsHere() const;
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

// Copies is what the directory's word may change on a node: a sealed copy that must go, a pull that
// is on its way.
//
// Membership and pulls talk to the directory and do not know each other; the node implements this.
// Thread rule: the node's control loop.
#pragma once

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"

namespace tokamak::node {

class Copies {
 public:
  virtual ~Copies() = default;

  // The directory must go on naming this node though `version` is not here: a pull that it has
  // entered as coming is bringing it, or this node vouches for copies elsewhere. Recheck follows.
  virtual bool StaysEntered(const base::ObjectVersion& version) const = 0;

  // The directory is being told that `version` is not here. A pull whose Locate is still to be
  // answered may have been entered as coming before, and no longer is.
  virtual void OnWithdraw(const base::ObjectVersion& version) = 0;

  // The directory names `version`, although this node was told that it was deleted: the directory
  // has forgotten the deletion, which is to be carried on.
  virtual void OnDeletedIsNamed(const base::ObjectVersion& version) = 0;

  // `version` must not be read here any more: it was deleted (kAborted), or another content has its
  // id (kAlreadyExists). From the return on no get of this node finds it, and none of its pulls
  // seals it.
  virtual void Drop(const base::ObjectVersion& version, const absl::Status& why) = 0;

  // After Drop: runs `done` when no copy that this node vouches for is left; null, and `done` does
  // not run, if none is now.
  [[nodiscard]] virtual base::Pending AwaitVouched(const base::ObjectVersion& version, base::Task done) = 0;
};

}  // namespace tokamak::node

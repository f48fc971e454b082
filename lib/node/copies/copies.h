// Copies is what the directory may change on a node: a sealed copy that must go, a pull under way.
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

  // True if the directory must go on naming this node though `version` is not here: a pull that it
  // has entered is bringing it, or this node vouches for copies elsewhere. Recheck follows.
  virtual bool StaysEntered(const base::ObjectVersion& version) const = 0;

  // The directory is being told that `version` is not here. A pull that still awaits the answer to
  // its Locate may have been entered as coming before, and no longer is.
  virtual void OnWithdraw(const base::ObjectVersion& version) = 0;

  // The directory names `version`, of whose deletion this node knows: the directory has forgotten
  // the deletion, which is to be carried on.
  virtual void OnDeletedIsNamed(const base::ObjectVersion& version) = 0;

  // Drops `version`, which was deleted (kAborted) or whose id has another content (kAlreadyExists).
  // From the return on no get of this node finds it, and none of its pulls seals it.
  virtual void Drop(const base::ObjectVersion& version, const absl::Status& why) = 0;

  // After Drop: runs `done` when no copy that this node vouches for is left. Returns null, without
  // running `done`, if none is now.
  [[nodiscard]] virtual base::Pending AwaitVouched(const base::ObjectVersion& version, base::Task done) = 0;
};

}  // namespace tokamak::node

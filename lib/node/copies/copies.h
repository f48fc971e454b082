// Copies is what the directory may change on a node: a sealed copy that must go, a pull under way.
//
// Keeps Membership and pulls apart; the node implements it. Thread rule: the control loop.
#pragma once

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"

namespace tokamak::node {

class Copies {
 public:
  virtual ~Copies() = default;

  // True if the directory must go on naming this node without `version` here: an entered pull
  // brings it, or this node vouches for copies. Recheck follows.
  virtual bool StaysEntered(const base::ObjectVersion& version) const = 0;

  // The directory hears that `version` is not here: this ends a pull's entry, even one whose answer
  // is on its way.
  virtual void OnWithdraw(const base::ObjectVersion& version) = 0;

  // The directory has forgotten the deletion of `version`, which is to be carried on.
  virtual void OnDeletedIsNamed(const base::ObjectVersion& version) = 0;

  // Drops `version`: deleted (kAborted), or its id has another content (kAlreadyExists). From now
  // on no get finds it, and no pull seals it.
  virtual void Drop(const base::ObjectVersion& version, const absl::Status& why) = 0;

  // After Drop: runs `done` when no vouched copy is left. Null, and no call, if there is none.
  [[nodiscard]] virtual base::Pending AwaitVouched(const base::ObjectVersion& version, base::Task done) = 0;
};

}  // namespace tokamak::node

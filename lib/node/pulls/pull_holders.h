// PullHolders is a pull's round through the holders of its object: each is tried once, the ready
// ones by fewest running pulls, then by chance.
//
// Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "lib/base/generation.h"
#include "lib/directory/directory.h"
#include "lib/node/pulls/pull_context.h"

namespace tokamak::node {

class PullHolders final {
 public:
  // Possible next steps in this round.
  struct Choice {
    directory::NodeId ready;  // the best; empty: none
    bool look_up = false;     // an address is unknown or suspect, and none was refreshed in this round
    std::vector<directory::NodeId> busy;
  };

  // `context` must outlive it.
  explicit PullHolders(PullContext& context) : context_(context) {}
  PullHolders(const PullHolders&) = delete;
  PullHolders& operator=(const PullHolders&) = delete;

  void BeginRound();

  // Chooses among the `holders` that the directory names for `version`; has it corrected where it
  // names this node.
  Choice Choose(const std::vector<directory::NodeId>& holders, const base::ObjectVersion& version);

  void NoteTried(const directory::NodeId& holder) { tried_.push_back(holder); }
  // Unmarks a tried `holder` that is not to blame.
  void Forgive(const directory::NodeId& holder);
  bool none_tried() const { return tried_.empty(); }

  void NoteRefreshed() { refreshed_ = true; }

 private:
  static constexpr size_t kFew = 2;  // usual, without an allocation

  bool Tried(const directory::NodeId& holder) const;

  PullContext& context_;
  // In this round:
  absl::InlinedVector<directory::NodeId, kFew> tried_;  // at most kMaxHoldersNamed
  bool refreshed_ = false;                              // the addresses
};

}  // namespace tokamak::node

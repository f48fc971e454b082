// PullHolders is a pull's round through the holders of its object: each is tried once, of those
// that are ready the one first from which the fewest pulls run; chance decides among equals.
//
// Thread rule: the node's control loop.
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
  // The possible next steps with the holders that were not tried in this round.
  struct Choice {
    directory::NodeId ready;  // the best of these; empty: none
    bool look_up = false;     // some address is unknown or suspect, and no addresses were refreshed in this round
    std::vector<directory::NodeId> busy;
  };

  // `context` must outlive it.
  explicit PullHolders(PullContext& context) : context_(context) {}
  PullHolders(const PullHolders&) = delete;
  PullHolders& operator=(const PullHolders&) = delete;

  void BeginRound();

  // Looks at `holders`, which the directory names for `version`. This node is none of them: where
  // it is named, it has the directory corrected.
  Choice Choose(const std::vector<directory::NodeId>& holders, const base::ObjectVersion& version);

  void NoteTried(const directory::NodeId& holder) { tried_.push_back(holder); }
  // `holder`, which was tried, is not to blame.
  void Forgive(const directory::NodeId& holder);
  bool none_tried() const { return tried_.empty(); }

  void NoteRefreshed() { refreshed_ = true; }

 private:
  static constexpr size_t kFew = 2;  // are tried for most pulls, and need no memory of their own

  bool Tried(const directory::NodeId& holder) const;

  PullContext& context_;
  // In this round:
  absl::InlinedVector<directory::NodeId, kFew> tried_;  // at most kMaxHoldersNamed
  bool refreshed_ = false;                              // the addresses of all nodes
};

}  // namespace tokamak::node

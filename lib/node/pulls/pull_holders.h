// PullHolders is a pull's round through the holders of its object: each is tried once; among the
// ready ones, first the one with the fewest running pulls, by chance among equals.
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
  // The possible next steps with the holders not yet tried in this round.
  struct Choice {
    directory::NodeId ready;  // the best ready holder; empty: none
    bool look_up = false;     // true if an address is unknown or suspect and none were refreshed in this round
    std::vector<directory::NodeId> busy;
  };

  // `context` must outlive it.
  explicit PullHolders(PullContext& context) : context_(context) {}
  PullHolders(const PullHolders&) = delete;
  PullHolders& operator=(const PullHolders&) = delete;

  void BeginRound();

  // Chooses among `holders`, which the directory names for `version`, except this node: if it is
  // named, it has the directory corrected.
  Choice Choose(const std::vector<directory::NodeId>& holders, const base::ObjectVersion& version);

  void NoteTried(const directory::NodeId& holder) { tried_.push_back(holder); }
  // Unmarks `holder`, which was tried and is not to blame.
  void Forgive(const directory::NodeId& holder);
  bool none_tried() const { return tried_.empty(); }

  void NoteRefreshed() { refreshed_ = true; }

 private:
  static constexpr size_t kFew = 2;  // enough for most pulls, without an allocation

  bool Tried(const directory::NodeId& holder) const;

  PullContext& context_;
  // In this round:
  absl::InlinedVector<directory::NodeId, kFew> tried_;  // at most kMaxHoldersNamed
  bool refreshed_ = false;                              // true if the addresses of all nodes were refreshed
};

}  // namespace tokamak::node

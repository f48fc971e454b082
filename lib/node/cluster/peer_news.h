// PeerNews compares the directory's roster with the one before and reports each change once: a node
// fell silent, is back, was restarted, or left.
//
//            silent              its grace is over
//   alive ------------> silent -------------------> (forgotten: its silence was reported)
//     |  <------------
//     |      back
//     |  not named     for `believe`
//     +------------> unnamed ------------> left
//
// A directory that has just begun does not name nodes that have not joined it yet: a node has left
// only when it was not named for a while. Bound: the nodes of two rosters. Thread rule: the node's
// control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/directory/directory.h"

namespace tokamak::node {

// Changes of another node that an operator wants to read.
enum class PeerChange : uint8_t {
  kFails,    // pulls from it fail; it is passed over for a while
  kAnswers,  // it failed before
  kSilent,   // its lease has ended without a renewal
  kBack,     // it was silent
  kRestarted,
  kLeft,  // the directory no longer knows it, and it was not silent before
};

class PeerNews final {
 public:
  using Tell = std::function<void(const directory::NodeId&, PeerChange)>;

  // `tell` may be empty. It runs within Read.
  PeerNews(base::Duration believe, Tell tell) : believe_(believe), tell_(std::move(tell)) {}

  // Compares the whole roster with the one before.
  void Read(absl::Span<const directory::RosterEntry> roster, base::Time now);

 private:
  enum class Standing : uint8_t { kAlive, kSilent, kUnnamed };
  struct Known {
    Standing standing = Standing::kAlive;
    uint64_t incarnation = 0;
    base::Time unnamed_since;  // kUnnamed
  };

  void Note(const directory::RosterEntry& entry);
  bool NoteUnnamed(const directory::NodeId& id, Known& known, base::Time now);
  void Say(const directory::NodeId& id, PeerChange change) const {
    if (tell_) tell_(id, change);
  }

  const base::Duration believe_;
  const Tell tell_;
  std::map<directory::NodeId, Known> known_;
};

}  // namespace tokamak::node

// PeerNews compares what the directory says of the nodes with what it said before, and tells each
// change once: a node fell silent, is back, was restarted, or left.
//
//            silent              its grace is over
//   alive ------------> silent -------------------> (forgotten, as that it is silent was told)
//     |  <------------
//     |      back
//     |  not named     for `believe`
//     +------------> unnamed ------------> left
//
// A directory that has just begun does not name nodes that have not joined it yet: that a node left
// is believed only when it was not named for a while.
// Bound: the nodes of two rosters. Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/directory/directory.h"

namespace tokamak::node {

// What an operator wants to read of another node, as far as this one has to do with it.
enum class PeerChange : uint8_t {
  kFails,    // pulls from it fail; it is left alone for a while
  kAnswers,  // it failed before
  kSilent,   // its lease has ended without a word
  kBack,     // it was silent
  kRestarted,
  kLeft,  // the directory does not know it any more, and it was not silent before
};

class PeerNews final {
 public:
  using Tell = std::function<void(const directory::NodeId&, PeerChange)>;

  // `tell` may be empty. It runs within Read.
  PeerNews(base::Duration believe, Tell tell) : believe_(believe), tell_(std::move(tell)) {}

  // All that the directory says now.
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

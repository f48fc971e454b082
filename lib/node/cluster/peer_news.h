// PeerNews compares the directory's roster with the last one and reports each change once: a node
// silent, back, restarted, or gone.
//
//            silent              its grace is over
//   alive ------------> silent -------------------> (forgotten: its silence was reported)
//     |  <------------
//     |      back
//     |  not named     for `believe`
//     +------------> unnamed ------------> left
//
// A fresh directory does not name nodes yet to join it: hence the wait. Bound: the nodes of two
// rosters. Thread rule: the control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/directory/directory.h"

namespace tokamak::node {

enum class PeerChange : uint8_t {
  kFails,    // pulls from it fail
  kAnswers,  // it failed before
  kSilent,   // its lease ended without a renewal
  kBack,
  kRestarted,
  kLeft,  // no longer named, without silence before
};

class PeerNews final {
 public:
  using Tell = std::function<void(const directory::NodeId&, PeerChange)>;

  // `tell` may be empty; runs within Read.
  PeerNews(base::Duration believe, Tell tell) : believe_(believe), tell_(std::move(tell)) {}

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

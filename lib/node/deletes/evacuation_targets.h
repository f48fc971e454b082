// EvacuationTargets are the nodes that an evacuation may ask to keep objects, and chooses the next.
//
// Round robin, at most kAtOnceEach asks open at each. One that does not answer is set aside for a
// doubling pause, then asked about one object until it answers; one without room is not asked about
// as large an object for a while. Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/time.h"
#include "lib/directory/directory.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

class EvacuationTargets final {
 public:
  static constexpr size_t kAtOnceEach = 8;
  static constexpr base::Duration kFirstSetAside = base::Milliseconds(500);
  static constexpr base::Duration kLongestSetAside = base::Seconds(8);
  static constexpr base::Duration kNoRoomFor = base::Seconds(1);

  struct Target {
    verbs::Address address;
    uint64_t capacity = 0;
    bool left = false;  // no longer named
    std::set<base::ObjectVersion> asks;
    base::Duration set_aside;  // zero: it answered last
    std::optional<base::Time> set_aside_until;
    std::optional<base::Time> no_room_until;
    uint64_t no_room = 0;  // bytes it has no room for, until then
    base::Pending look;    // the open question how far it is
  };

  // Takes the directory's nodes; others go once none of their asks is open.
  void Update(absl::Span<const directory::NodeInfo> nodes, const directory::NodeId& self);

  // Chooses the next in turn for `size` bytes that is not in `but`; else the first reason that
  // applies to one.
  enum class Choice : uint8_t {
    kFound,
    kBusy,     // all asks open
    kRefused,  // all are in `but`
    kNoRoom,
    kSetAside,  // nobody answers
    kTooLarge,  // for each, ever
    kNobody,    // no other node
  };
  Choice Choose(uint64_t size, absl::Span<const directory::NodeId> but, base::Time now, directory::NodeId* chosen);
  bool AnyOpen(base::Time now) const;

  void SetAside(Target& target, base::Time now);
  void Leaves(Target& target, base::Time now) { target.set_aside_until = now + kLongestSetAside; }
  void HasNoRoom(Target& target, uint64_t size, base::Time now);
  void Answers(Target& target) { target.set_aside = base::Duration(), target.set_aside_until.reset(); }

  Target* Find(const directory::NodeId& id);
  std::map<directory::NodeId, Target>& all() { return targets_; }
  // True if only nodes no longer named are left.
  bool empty() const;

 private:
  static bool IsSetAside(const Target& target, base::Time now) {
    if (target.left || (target.set_aside_until.has_value() && now < *target.set_aside_until)) return true;
    return target.set_aside > base::Duration() && !target.asks.empty();
  }

  std::map<directory::NodeId, Target> targets_;
  directory::NodeId last_;  // chosen
};

}  // namespace tokamak::node

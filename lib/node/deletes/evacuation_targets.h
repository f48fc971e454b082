// EvacuationTargets are the nodes that an evacuation may ask to keep something: who is asked next,
// and who better not now.
//
// They are asked in turns, and each about kAtOnceEach objects at a time, so that one that is slow
// holds up only those. One that does not answer is set aside, for a pause that doubles; then it is
// asked about one object, until it answers. One that has no room for an object is not asked about
// any that is as large for a while.
// Thread rule: the node's control loop.
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
    bool left = false;                   // the directory does not name it any more
    std::set<base::ObjectVersion> asks;  // that it is asked to keep now
    base::Duration set_aside;            // zero: it answered last
    std::optional<base::Time> set_aside_until;
    std::optional<base::Time> no_room_until;
    uint64_t no_room = 0;  // for this many bytes, until then
    base::Pending look;    // Evacuation asks how far it is
  };

  // What the directory says. Those that are not in it any more are left as soon as no ask is open.
  void Update(absl::Span<const directory::NodeInfo> nodes, const directory::NodeId& self);

  // The next in turn that may be asked to keep `size` bytes, and is none of `but`. Where there is
  // none: the first of these reasons that one of them has.
  enum class Choice : uint8_t {
    kFound,
    kBusy,     // those who may be asked are asked enough already
    kRefused,  // all that could be asked are in `but`
    kNoRoom,
    kSetAside,  // nobody answers
    kTooLarge,  // for each of them, ever
    kNobody,    // there is no other node
  };
  Choice Choose(uint64_t size, absl::Span<const directory::NodeId> but, base::Time now, directory::NodeId* chosen);
  // Whether anybody may be asked anything.
  bool AnyOpen(base::Time now) const;

  void SetAside(Target& target, base::Time now);
  void Leaves(Target& target, base::Time now) { target.set_aside_until = now + kLongestSetAside; }
  void HasNoRoom(Target& target, uint64_t size, base::Time now);
  void Answers(Target& target) { target.set_aside = base::Duration(), target.set_aside_until.reset(); }

  Target* Find(const directory::NodeId& id);
  std::map<directory::NodeId, Target>& all() { return targets_; }
  // But for those that have left.
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

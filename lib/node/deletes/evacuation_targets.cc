#include "lib/node/deletes/evacuation_targets.h"

#include <algorithm>

namespace tokamak::node {

void EvacuationTargets::Update(absl::Span<const directory::NodeInfo> nodes, const directory::NodeId& self) {
  for (auto& [id, target] : targets_) target.left = true;
  for (const directory::NodeInfo& node : nodes) {
    if (node.id == self || node.engines.empty()) continue;
    const auto address = verbs::Address::Parse(node.engines.front());
    if (!address.ok()) continue;
    Target& target = targets_[node.id];
    target.left = false;
    target.address = *address;
    target.capacity = node.capacity;
  }
  for (auto next = targets_.begin(); next != targets_.end();) {
    const auto one = next++;
    if (one->second.left && one->second.asks.empty()) targets_.erase(one);
  }
}

EvacuationTargets::Choice EvacuationTargets::Choose(uint64_t size, absl::Span<const directory::NodeId> but,
                                                    base::Time now, directory::NodeId* chosen) {
  if (empty()) return Choice::kNobody;
  Choice why = Choice::kTooLarge;
  const auto say = [&why](Choice choice) { why = std::min(why, choice); };
  auto next = targets_.upper_bound(last_);
  for (size_t i = 0; i < targets_.size(); ++i) {
    if (next == targets_.end()) next = targets_.begin();
    const auto& [id, target] = *next++;
    if (target.left || size > target.capacity) continue;
    if (std::find(but.begin(), but.end(), id) != but.end()) {
      say(Choice::kRefused);
    } else if (IsSetAside(target, now)) {
      say(Choice::kSetAside);
    } else if (target.no_room_until.has_value() && now < *target.no_room_until && size >= target.no_room) {
      say(Choice::kNoRoom);
    } else if (target.asks.size() >= kAtOnceEach) {
      say(Choice::kBusy);
    } else {
      *chosen = last_ = id;
      return Choice::kFound;
    }
  }
  return why;
}

bool EvacuationTargets::AnyOpen(base::Time now) const {
  return std::any_of(targets_.begin(), targets_.end(), [now](const auto& entry) {
    return !IsSetAside(entry.second, now) && entry.second.asks.size() < kAtOnceEach;
  });
}

// Asks failing together count once.
void EvacuationTargets::SetAside(Target& target, base::Time now) {
  if (target.set_aside_until.has_value() && now < *target.set_aside_until) return;
  target.set_aside = std::clamp(target.set_aside * 2, kFirstSetAside, kLongestSetAside);
  target.set_aside_until = now + target.set_aside;
}

void EvacuationTargets::HasNoRoom(Target& target, uint64_t size, base::Time now) {
  const bool lately = target.no_room_until.has_value() && now < *target.no_room_until;
  target.no_room = lately ? std::min(target.no_room, size) : size;
  target.no_room_until = now + kNoRoomFor;
}

EvacuationTargets::Target* EvacuationTargets::Find(const directory::NodeId& id) {
  const auto found = targets_.find(id);
  return found == targets_.end() ? nullptr : &found->second;
}

bool EvacuationTargets::empty() const {
  return std::all_of(targets_.begin(), targets_.end(), [](const auto& entry) { return entry.second.left; });
}

}  // namespace tokamak::node

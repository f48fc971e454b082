#include "lib/verbs/soft/ud/multicast_groups.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::soft {

const MulticastGroups::Members* MulticastGroups::Find(const Ip& group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : &found->second;
}

bool MulticastGroups::Has(const Ip& group, const DatagramCore& queue_pair) const {
  const Members* const members = Find(group);
  return members != nullptr && std::find(members->begin(), members->end(), &queue_pair) != members->end();
}

absl::Status MulticastGroups::MayAdd(const Ip& group) const {
  const Members* const members = Find(group);
  if (members == nullptr && groups_.size() >= kMaxGroups) {
    return absl::ResourceExhaustedError(absl::StrCat("this device is in ", kMaxGroups, " multicast groups already"));
  }
  if (members != nullptr && members->size() >= kMaxMembers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the multicast group has ", kMaxMembers, " queue pairs of this device already"));
  }
  return absl::OkStatus();
}

void MulticastGroups::Add(const Ip& group, DatagramCore& queue_pair) { groups_[group].push_back(&queue_pair); }

bool MulticastGroups::Remove(const Ip& group, DatagramCore& queue_pair) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return false;
  Members& members = found->second;
  const auto member = std::find(members.begin(), members.end(), &queue_pair);
  if (member == members.end()) return false;
  members.erase(member);
  if (members.empty()) groups_.erase(found);
  return true;
}

}  // namespace tokamak::verbs::soft

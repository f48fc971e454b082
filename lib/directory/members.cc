#include "lib/directory/members.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::directory {

absl::StatusOr<Members::Joined> Members::Join(const JoinRequest& request) {
  const NodeInfo& node = request.node;
  if (absl::Status status = CheckNode(node); !status.ok()) return status;
  if (request.lease <= base::Duration() || request.grace < base::Duration()) {
    return absl::InvalidArgumentError("a lease lasts longer than no time, and a grace is not negative");
  }
  const auto known = by_name_.find(node.id);
  Member* member = known == by_name_.end() ? nullptr : known->second;
  bool has_place = member != nullptr;
  if (member != nullptr && member->info.incarnation != node.incarnation) {
    if (absl::Status status = MayFollow(*member, node); !status.ok()) return status;
    const bool replaces = member->info.engines == node.engines;
    has_place = replaces && member->host == request.host;
    if (replaces) End(*member);
    member = nullptr;
  }
  if (!has_place) {
    if (absl::Status status = MayEnter(request.host); !status.ok()) return status;
  }
  Joined joined;
  joined.entered = member == nullptr;
  joined.back = member != nullptr && !member->alive;
  joined.member = joined.entered ? &Enter(request) : member;
  if (request.returning && (joined.entered || joined.back) && !joined.member->learning) {
    joined.member->learning = true;
    learning_.push_back(joined.member->number);
  }
  // An unknown life has announced nothing yet here, even if it has elsewhere.
  if (request.complete && !joined.entered) {
    joined.member->learning = false;
    joined.member->mark.reset();
  }
  Renew(*joined.member, request);
  return joined;
}

absl::Status Members::MayFollow(const Member& earlier, const NodeInfo& node) const {
  if (node.incarnation < earlier.info.incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat("a later life of node ", node.id, " is in the directory: stop this one, or give it another name"));
  }
  if (!earlier.alive || earlier.info.engines == node.engines) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("a node ", node.id, " is alive at ", earlier.info.engines.front(),
                                               ": stop it, or give this one another name"));
}

absl::Status Members::MayEnter(const Host& host) const {
  if (places_.full()) {
    return absl::ResourceExhaustedError(absl::StrCat("the directory holds ", kMaxNodes, " nodes at most"));
  }
  if (host == Host() || places_.MayTake(host)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("of the ", kMaxNodes,
                                                   " nodes that the directory holds at most, one ",
                                                   "address joins no more than it leaves to others"));
}

Member& Members::Enter(const JoinRequest& request) {
  auto member = std::make_unique<Member>();
  member->number = ++last_number_;
  member->host = request.host;
  member->place = places_.Take(request.host);
  by_name_[request.node.id] = member.get();
  return *(by_number_[last_number_] = std::move(member));
}

void Members::Renew(Member& member, const JoinRequest& request) {
  member.info = request.node;
  if (member.host != request.host) {  // it has several addresses
    member.place = {};
    member.place = places_.Take(request.host);
    member.host = request.host;
  }
  member.alive = true;
  member.grace = request.grace;
  member.heard_of = loop_.Now();
  member.next = loop_.RunAfter(request.lease, [this, &member] { FallSilent(member); });
}

void Members::FallSilent(Member& member) {
  member.alive = false;
  member.next = loop_.RunAfter(member.grace, [this, &member] { End(member); });
}

void Members::Leave(const NodeId& node, uint64_t incarnation) {
  const auto known = by_name_.find(node);
  if (known != by_name_.end() && known->second->info.incarnation == incarnation) End(*known->second);
}

void Members::End(Member& member) {
  const uint64_t number = member.number;
  const auto named = by_name_.find(member.info.id);
  if (named != by_name_.end() && named->second == &member) by_name_.erase(named);
  by_number_.erase(number);
  gone_(number);
}

const Member* Members::Find(uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second.get();
}

const Member* Members::FindAlive(const NodeId& node) const {
  const auto known = by_name_.find(node);
  return known != by_name_.end() && known->second->alive ? known->second : nullptr;
}

const Member* Members::Learning() {
  const auto has_told = [this](uint64_t number) {
    const Member* member = Find(number);
    return member == nullptr || !member->learning;
  };
  learning_.erase(std::remove_if(learning_.begin(), learning_.end(), has_told), learning_.end());
  return learning_.empty() ? nullptr : Find(learning_.front());
}

std::vector<RosterEntry> Members::Roster(const NodeId& after, size_t most) const {
  std::vector<RosterEntry> roster;
  for (auto named = by_name_.upper_bound(after); named != by_name_.end() && roster.size() < most; ++named) {
    const Member& member = *named->second;
    roster.push_back({member.info, member.alive ? Liveness::kAlive : Liveness::kSilent, loop_.Now() - member.heard_of});
  }
  return roster;
}

}  // namespace tokamak::directory

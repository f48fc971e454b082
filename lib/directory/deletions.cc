#include "lib/directory/deletions.h"

#include "lib/base/check.h"

namespace tokamak::directory {

void Deletions::Begin(const base::ObjectVersion& version, bool provisional, std::set<uint64_t> members) {
  if (Finished(version)) return;
  const auto [deletion, is_new] = under_way_.emplace(version, Deletion{provisional, std::move(members)});
  CHECK(is_new);
  for (const uint64_t member : deletion->second.pending) drops_.emplace(member, version);
  if (deletion->second.pending.empty()) Finish(deletion);
}

void Deletions::Add(const base::ObjectVersion& version, uint64_t member) {
  const auto deletion = under_way_.find(version);
  CHECK(deletion != under_way_.end());
  deletion->second.pending.insert(member);
  drops_.emplace(member, version);
}

void Deletions::Confirm(const base::ObjectVersion& version, uint64_t member) {
  if (drops_.erase({member, version}) == 0) return;
  const auto deletion = under_way_.find(version);
  if (deletion == under_way_.end()) return;
  deletion->second.pending.erase(member);
  if (deletion->second.pending.empty()) Finish(deletion);
}

base::Generation Deletions::FindUnderWay(const base::ObjectId& id) {
  const auto deletion = First(id);
  return deletion == under_way_.end() ? base::kNoGeneration : deletion->first.generation;
}

bool Deletions::OnlyProvisionalUnderWay(const base::ObjectId& id) {
  for (auto deletion = First(id); deletion != under_way_.end() && deletion->first.id == id; ++deletion) {
    if (!deletion->second.provisional) return false;
  }
  return true;
}

const std::set<uint64_t>* Deletions::Pending(const base::ObjectVersion& version) {
  const auto deletion = under_way_.find(version);
  return deletion != under_way_.end() && StillUnderWay(deletion) ? &deletion->second.pending : nullptr;
}

std::vector<base::ObjectVersion> Deletions::DropsOf(uint64_t member, const base::ObjectVersion& after,
                                                    size_t most) const {
  std::vector<base::ObjectVersion> drops;
  const auto begin = drops_.lower_bound({member, {}});
  const auto middle = drops_.upper_bound({member, after});
  const auto add = [&](auto drop, auto end) {
    for (; drop != end && drop->first == member && drops.size() < most; ++drop) drops.push_back(drop->second);
  };
  add(middle, drops_.end());
  add(begin, middle);
  return drops;
}

bool Deletions::Forget() {
  for (size_t forgotten = 0; forgotten < kForgottenAtOnce && !gone_.empty(); ++forgotten) {
    const auto drop = drops_.lower_bound({gone_.front(), {}});
    if (drop == drops_.end() || drop->first != gone_.front()) {
      gone_.pop_front();
    } else {
      Confirm(base::ObjectVersion(drop->second), gone_.front());
    }
  }
  return !gone_.empty();
}

Deletions::UnderWayMap::iterator Deletions::First(const base::ObjectId& id) {
  auto deletion = under_way_.lower_bound({id, base::kNoGeneration});
  while (deletion != under_way_.end() && deletion->first.id == id) {
    const auto next = std::next(deletion);
    if (StillUnderWay(deletion)) return deletion;
    deletion = next;
  }
  return under_way_.end();
}

bool Deletions::StillUnderWay(UnderWayMap::iterator deletion) {
  const base::ObjectVersion version = deletion->first;
  std::set<uint64_t>& pending = deletion->second.pending;
  for (auto member = pending.begin(); member != pending.end();) {
    if (members_.Find(*member) != nullptr) {
      ++member;
      continue;
    }
    drops_.erase({*member, version});
    member = pending.erase(member);
  }
  if (!pending.empty()) return true;
  Finish(deletion);
  return false;
}

void Deletions::Finish(UnderWayMap::iterator deletion) {
  ++finished_;
  if (tombstone_order_.size() == most_tombstones_) {
    tombstones_.erase(tombstone_order_.front());
    tombstone_order_.pop_front();
  }
  tombstone_order_.push_back(deletion->first);
  tombstones_.insert(deletion->first);
  under_way_.erase(deletion);
}

}  // namespace tokamak::directory

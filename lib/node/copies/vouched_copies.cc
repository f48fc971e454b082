#include "lib/node/copies/vouched_copies.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "lib/base/check.h"
#include "lib/node/calls/object_messages.h"

namespace tokamak::node {

VouchedCopies::Waiter::~Waiter() {
  if (object_ != nullptr) object_->waiters.Remove(this);
}

void VouchedCopies::Waiter::Tell() {
  object_ = nullptr;
  const base::Task done = std::move(done_);
  done();
}

VouchedCopies::~VouchedCopies() {
  for (auto& [version, object] : objects_) {
    while (!object.waiters.empty()) object.waiters.PopFront()->Orphan();
  }
}

bool VouchedCopies::Vouch(const base::ObjectVersion& version, const verbs::Address& node, base::Duration lifetime) {
  if (expiries_.size() >= kMaxCopies) return false;
  Object& object = objects_[version];
  if (object.nodes.size() >= kMaxNodes && object.nodes.count(node) == 0) return false;
  Add(object, version, node, lifetime);
  return true;
}

// Never shortens a promise.
void VouchedCopies::Add(Object& object, const base::ObjectVersion& version, const verbs::Address& node,
                        base::Duration lifetime) {
  const base::Time until = needs_.loop.Now() + lifetime;
  base::Time& told = object.nodes[node];
  if (until <= told) return;
  told = until;
  expiries_.emplace(until, Expiry{version, node});
  if (expiries_.begin()->first == until) expiry_ = needs_.loop.RunAt(until, [this] { Expire(); });
}

void VouchedCopies::Drop(const base::ObjectVersion& version) {
  const auto found = objects_.find(version);
  if (found == objects_.end() || found->second.dropping) return;
  Object& object = found->second;
  object.dropping = true;
  for (const auto& [node, until] : object.nodes) object.named.insert(node);
  Tell(version);
}

base::Pending VouchedCopies::Await(const base::ObjectVersion& version, base::Task done) {
  const auto found = objects_.find(version);
  if (found == objects_.end()) return nullptr;
  auto waiter = std::make_unique<Waiter>(found->second, std::move(done));
  found->second.waiters.PushBack(waiter.get());
  return waiter;
}

void VouchedCopies::Tell(const base::ObjectVersion& version) {
  Object& object = objects_.at(version);
  for (const auto& [node, until] : object.nodes) {
    if (object.calls.count(node) != 0) continue;
    object.calls[node] =
        needs_.objects.Call(node, EncodeRequest(DropCopyRequest{version}), options_.deadline,
                            [this, version, node = node](const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
                              Answered(version, node, answer);
                            });
  }
}

void VouchedCopies::TellLater(Object& object, const base::ObjectVersion& version) {
  if (!object.retry.armed()) object.retry = needs_.loop.RunAfter(options_.retry, [this, version] { Tell(version); });
}

void VouchedCopies::Answered(const base::ObjectVersion& version, const verbs::Address& node,
                             const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
  Object& object = objects_.at(version);
  const auto call = object.calls.extract(node);
  if (!answer.ok() || !TakeNames(object, version, *answer)) return TellLater(object, version);
  if (!Remove(version, node)) Tell(version);
}

// Adds the nodes that `node` vouches for. False: malformed, or too many.
bool VouchedCopies::TakeNames(Object& object, const base::ObjectVersion& version, absl::Span<const uint8_t> answer) {
  const std::optional<std::vector<verbs::Address>> nodes = DecodeDropCopyAnswer(answer);
  if (!nodes.has_value() || object.nodes.size() + nodes->size() > DropCopyRequest::kMaxNamed + 1) return false;
  for (const verbs::Address& node : *nodes) {
    if (node != needs_.self && object.named.insert(node).second) Add(object, version, node, options_.lifetime);
  }
  return true;
}

std::vector<verbs::Address> VouchedCopies::NodesOf(const base::ObjectVersion& version) const {
  std::vector<verbs::Address> nodes;
  const auto found = objects_.find(version);
  if (found == objects_.end()) return nodes;
  for (const auto& [node, until] : found->second.nodes) nodes.push_back(node);
  return nodes;
}

// True: it was the last; the waiters have run, and may have dropped us.
bool VouchedCopies::Remove(const base::ObjectVersion& version, const verbs::Address& node) {
  const auto found = objects_.find(version);
  CHECK(found != objects_.end() && found->second.nodes.erase(node) == 1);
  found->second.calls.erase(node);
  if (!found->second.nodes.empty()) return false;
  auto over = objects_.extract(found);  // for the waiters
  gone_(version);
  while (!over.mapped().waiters.empty()) over.mapped().waiters.PopFront()->Tell();
  return true;
}

void VouchedCopies::Expire() {
  while (!expiries_.empty() && expiries_.begin()->first <= needs_.loop.Now()) {
    const auto [time, expiry] = *expiries_.begin();
    expiries_.erase(expiries_.begin());
    const auto found = objects_.find(expiry.version);
    if (found == objects_.end()) continue;
    const auto node = found->second.nodes.find(expiry.node);
    if (node == found->second.nodes.end() || node->second > time) continue;  // vouched for again
    expiry_ = needs_.loop.Post([this] { Expire(); });
    Remove(expiry.version, expiry.node);
    return;
  }
  if (!expiries_.empty()) expiry_ = needs_.loop.RunAt(expiries_.begin()->first, [this] { Expire(); });
}

}  // namespace tokamak::node

#include "lib/directory/local.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::directory {

void LocalDirectory::Join(const NodeInfo& node, base::Duration lease, base::Duration, JoinCallback done) {
  const auto answer = [this, &done](absl::StatusOr<JoinResult> result) {
    Answer([done = std::move(done), result = std::move(result)] { done(result); });
  };
  if (absl::Status status = CheckNode(node); !status.ok()) return answer(status);
  auto known = nodes_.find(node.id);
  if (known == nodes_.end() && nodes_.size() >= kMaxNodes) {
    return answer(absl::ResourceExhaustedError(absl::StrCat("the directory holds ", kMaxNodes, " nodes at most")));
  }
  if (known != nodes_.end() && known->second.info.incarnation > node.incarnation) {
    return answer(absl::FailedPreconditionError(absl::StrCat(
        "a later life of node ", node.id, " is in the directory: stop this one, or give it another name")));
  }
  const bool renewed = known != nodes_.end() && known->second.info.incarnation == node.incarnation;
  if (!renewed) Forget(node.id);
  Member& member = nodes_[node.id];
  member.info = node;
  member.lease = loop_.RunAfter(lease, [this, id = node.id] { Forget(NodeId(id)); });
  answer(renewed ? JoinResult::kRenewed : JoinResult::kEntered);
}

void LocalDirectory::Leave(const NodeId& node, uint64_t incarnation, base::Duration, StatusCallback done) {
  const auto known = nodes_.find(node);
  if (known != nodes_.end() && known->second.info.incarnation == incarnation) Forget(node);
  Answer([done = std::move(done)] { done(absl::OkStatus()); });
}

void LocalDirectory::Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const NodeId& node,
                              base::Duration, StatusCallback done) {
  const auto answer = [this, &done](absl::Status status) {
    Answer([done = std::move(done), status = std::move(status)] { done(status); });
  };
  const auto member = nodes_.find(node);
  if (member == nodes_.end()) {
    return answer(absl::NotFoundError(absl::StrCat("node ", node, " has no lease in the directory: join first")));
  }
  if (objects_.size() >= bounds_.objects && objects_.count(id) == 0) {
    return answer(
        absl::ResourceExhaustedError(absl::StrCat("the directory holds ", bounds_.objects, " objects at most")));
  }
  Entry& entry = objects_[id];
  ObjectInfo& info = entry.info;
  if (info.holders.empty()) {
    info.data_size = data_size;
    info.metadata_size = metadata_size;
  } else if (info.data_size != data_size || info.metadata_size != metadata_size) {
    return answer(absl::InvalidArgumentError(
        absl::StrCat("the cluster knows this object with ", info.data_size, " + ", info.metadata_size,
                     " bytes: an id names one immutable object, choose another id")));
  }
  const bool known = std::find(info.holders.begin(), info.holders.end(), node) != info.holders.end();
  if (!known && info.holders.size() < kMaxHolders) {
    info.holders.push_back(node);
    member->second.held.insert(id);
  }
  WakeWaiting(entry);
  answer(absl::OkStatus());
}

void LocalDirectory::Withdraw(const base::ObjectId& id, const NodeId& node, base::Duration, StatusCallback done) {
  if (const auto member = nodes_.find(node); member != nodes_.end()) member->second.held.erase(id);
  Remove(id, node);
  Answer([done = std::move(done)] { done(absl::OkStatus()); });
}

void LocalDirectory::Locate(const base::ObjectId& id, base::Duration wait, base::Duration, LocateCallback done) {
  if (const ObjectInfo* held = FindHeld(id)) {
    return Answer([done = std::move(done), info = *held]() mutable { done(std::move(info)); });
  }
  if (wait <= base::Duration()) {
    return Answer([done = std::move(done)] { done(absl::NotFoundError("no node holds the object")); });
  }
  if (waiting_ >= bounds_.waiting) {
    return Answer([done = std::move(done)] {
      done(absl::ResourceExhaustedError("too many wait in the directory for objects to appear: try again later"));
    });
  }
  const uint64_t number = AddWaiting(id, std::move(done));
  objects_[id].waiting[number].timeout = loop_.RunAfter(wait, [this, id, number] {
    const LocateCallback callback = std::move(objects_[id].waiting[number].done);
    DropWaiting(base::ObjectId(id), number);
    callback(absl::NotFoundError("no node holds the object"));
  });
}

const ObjectInfo* LocalDirectory::FindHeld(const base::ObjectId& id) const {
  const auto found = objects_.find(id);
  return found == objects_.end() || found->second.info.holders.empty() ? nullptr : &found->second.info;
}

uint64_t LocalDirectory::AddWaiting(const base::ObjectId& id, LocateCallback done) {
  ++waiting_;
  objects_[id].waiting[++last_waiting_].done = std::move(done);
  return last_waiting_;
}

// Does nothing where it was woken.
void LocalDirectory::DropWaiting(const base::ObjectId& id, uint64_t number) {
  const auto found = objects_.find(id);
  if (found == objects_.end() || found->second.waiting.erase(number) == 0) return;
  --waiting_;
  EraseIfIdle(id);
}

void LocalDirectory::Nodes(base::Duration, NodesCallback done) {
  std::vector<NodeInfo> nodes;
  for (const auto& [id, member] : nodes_) nodes.push_back(member.info);
  Answer([done = std::move(done), nodes = std::move(nodes)] { done(nodes); });
}

void LocalDirectory::WakeWaiting(Entry& entry) {
  for (auto& [number, waiting] : entry.waiting) {
    --waiting_;
    Answer([done = std::move(waiting.done), info = entry.info]() mutable { done(std::move(info)); });
  }
  entry.waiting.clear();
}

void LocalDirectory::Forget(const NodeId& node) {
  const auto member = nodes_.extract(node);  // its timer may be what calls
  if (member.empty()) return;
  for (const base::ObjectId& id : member.mapped().held) Remove(id, node);
}

void LocalDirectory::Remove(const base::ObjectId& id, const NodeId& node) {
  const auto found = objects_.find(id);
  if (found == objects_.end()) return;
  std::vector<NodeId>& holders = found->second.info.holders;
  holders.erase(std::remove(holders.begin(), holders.end(), node), holders.end());
  EraseIfIdle(id);
}

void LocalDirectory::EraseIfIdle(const base::ObjectId& id) {
  const auto found = objects_.find(id);
  if (found != objects_.end() && found->second.info.holders.empty() && found->second.waiting.empty()) {
    objects_.erase(found);
  }
}

}  // namespace tokamak::directory

#include "tests/directory/conformance/fixture.h"

#include <algorithm>

namespace tokamak::directory {

using base::ObjectId;

void DirectoryConformance::SetUp() {
  backend_ = GetParam().make();
  ASSERT_NE(backend_, nullptr);
}

void DirectoryConformance::TearDown() {
  if (backend_ == nullptr) return;
  Pass(base::Milliseconds(1));
  for (const auto& check : checks_) check();
}

NodeInfo DirectoryConformance::Node(const NodeId& id, uint64_t incarnation, const std::string& engine) {
  NodeInfo node;
  node.id = id;
  node.incarnation = incarnation;
  node.engines = {engine};
  node.device = "soft:udp@10.0.0.1";
  node.capacity = 1 << 30;
  return node;
}

base::ObjectVersion DirectoryConformance::Version(const std::string& object, uint64_t generation) {
  return {ObjectId::FromName(object), base::Generation{generation}};
}

JoinRequest DirectoryConformance::JoinOf(const NodeInfo& node, base::Duration lease, base::Duration grace) {
  JoinRequest request;
  request.node = node;
  request.lease = lease;
  request.grace = grace;
  return request;
}

directory::Update DirectoryConformance::AnnouncementOf(const std::string& object, uint64_t generation,
                                                       bool established) {
  directory::Update update;
  update.version = Version(object, generation);
  update.data_size = 100;
  update.metadata_size = 10;
  if (established) update.standing = Standing::kEstablished;
  return update;
}

directory::Update DirectoryConformance::WithdrawalOf(const std::string& object, uint64_t generation) {
  directory::Update update;
  update.kind = directory::Update::Kind::kWithdraw;
  update.version = Version(object, generation);
  return update;
}

AnswerOf<DirectoryConformance::Joined> DirectoryConformance::StartJoin(Directory& directory, const JoinRequest& request,
                                                                       base::Duration deadline) {
  return Start<Joined>([&](auto done) { return directory.Join(request, deadline, done); });
}

AnswerOf<DirectoryConformance::Updated> DirectoryConformance::StartUpdate(Directory& directory, const NodeId& node,
                                                                          const std::vector<directory::Update>& updates,
                                                                          base::Duration deadline) {
  return Start<Updated>([&](auto done) { return directory.Update(node, as_of_[node], updates, deadline, done); });
}

AnswerOf<DirectoryConformance::Located> DirectoryConformance::StartLocate(Directory& directory,
                                                                          const std::string& object,
                                                                          base::Duration wait, base::Duration deadline,
                                                                          const NodeId& puller) {
  return Start<Located>([&](auto done) {
    return directory.Locate({ObjectId::FromName(object), wait, deadline, puller}, done);
  });
}

AnswerOf<DirectoryConformance::Deleted> DirectoryConformance::StartDelete(Directory& directory,
                                                                          const DeleteRequest& request,
                                                                          base::Duration deadline) {
  return Start<Deleted>([&](auto done) { return directory.Delete(request, deadline, done); });
}

DirectoryConformance::Joined DirectoryConformance::Join(const JoinRequest& request) {
  const Joined joined = Await(StartJoin(here(), request));
  if (joined.ok()) as_of_[request.node.id] = joined->as_of;
  return joined;
}

absl::Status DirectoryConformance::Leave(const NodeId& node, uint64_t incarnation) {
  return Await(Start<absl::Status>([&](auto done) { return here().Leave(node, incarnation, kDeadline, done); }));
}

std::vector<absl::Status> DirectoryConformance::Update(const NodeId& node,
                                                       const std::vector<directory::Update>& updates) {
  const Updated updated = Await(StartUpdate(here(), node, updates));
  EXPECT_TRUE(updated.ok()) << updated.status();
  if (!updated.ok()) return std::vector<absl::Status>(updates.size(), updated.status());
  EXPECT_EQ(updated->size(), updates.size());
  return {updated->begin(), updated->end()};
}

DirectoryConformance::Deleted DirectoryConformance::Delete(const std::string& object, uint64_t generation,
                                                           const Ids& dropped, const NodeId& after) {
  const base::ObjectVersion version = Version(object, generation);
  return Await(StartDelete(here(), {version.id, version.generation, dropped, after}));
}

DirectoryConformance::Verified DirectoryConformance::Verify(const NodeId& node,
                                                            const std::vector<base::ObjectVersion>& versions) {
  return Await(Start<Verified>([&](auto done) { return here().Verify(node, versions, kDeadline, done); }));
}

absl::StatusOr<HeldReply> DirectoryConformance::HeldPage(const NodeId& node, const std::string& after) {
  return Await(Start<absl::StatusOr<HeldReply>>([&](auto done) { return here().Held(node, after, kDeadline, done); }));
}

std::vector<base::ObjectVersion> DirectoryConformance::Held(const NodeId& node) {
  std::vector<base::ObjectVersion> held;
  HeldReply page;
  do {
    auto next = HeldPage(node, page.next);
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) break;
    page = *std::move(next);
    EXPECT_LE(page.versions.size(), 2 * kHeldPage);
    held.insert(held.end(), page.versions.begin(), page.versions.end());
  } while (!page.next.empty());
  std::sort(held.begin(), held.end());
  return held;
}

DirectoryConformance::NodeList DirectoryConformance::Nodes() {
  return Await(Start<NodeList>([&](auto done) { return here().Nodes(kDeadline, done); }));
}

DirectoryConformance::RosterList DirectoryConformance::Roster() {
  return Await(Start<RosterList>([&](auto done) { return here().Roster(kDeadline, done); }));
}

void DirectoryConformance::JoinAndAnnounce(const Ids& nodes, const std::string& object) {
  bool first = true;
  for (const NodeId& node : nodes) {
    ASSERT_TRUE(Join(node).ok());
    ASSERT_TRUE(Announce(node, object, 1, /*established=*/!first).ok());
    first = false;
  }
}

DirectoryConformance::Joined DirectoryConformance::Return(const NodeId& node, bool complete, const std::string& mark) {
  JoinRequest request = JoinOf(Node(node));
  request.returning = true;
  request.complete = complete;
  request.mark = mark;
  return Join(request);
}

void DirectoryConformance::DeleteMoreThanIsRemembered(const NodeId& holder) {
  for (size_t i = 0; i < kFewTombstones; ++i) {
    const std::string object = "short-lived " + std::to_string(i);
    const uint64_t generation = ++last_generation_;
    ASSERT_TRUE(Join(holder).ok());
    ASSERT_TRUE(Announce(holder, object, generation).ok());
    ASSERT_TRUE(Delete(object).ok());
    ASSERT_TRUE(Delete(object, generation, {holder}).ok());
  }
}

Ids DirectoryConformance::Holders(const std::string& object) {
  const Located info = Locate(object);
  EXPECT_TRUE(info.ok() || absl::IsNotFound(info.status())) << info.status();
  Ids holders = info.ok() ? info->holders : Ids();
  std::sort(holders.begin(), holders.end());
  return holders;
}

Ids DirectoryConformance::NodeIds() {
  Ids ids;
  const auto nodes = Nodes();
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  if (nodes.ok()) {
    for (const NodeInfo& node : *nodes) ids.push_back(node.id);
  }
  return ids;
}

}  // namespace tokamak::directory

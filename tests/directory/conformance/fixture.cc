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
  for (const auto& runs : once_) EXPECT_LE(runs(), 1u) << "a callback ran more than once";
  if (dropped_) return;
  for (const auto& runs : once_) EXPECT_EQ(runs(), 1u) << "a callback did not run";
}

NodeInfo DirectoryConformance::Node(const NodeId& id, uint64_t incarnation) {
  NodeInfo node;
  node.id = id;
  node.incarnation = incarnation;
  node.engines = {"10.0.0.1:7000"};
  node.device = "soft:udp@10.0.0.1";
  node.capacity = 1 << 30;
  return node;
}

std::shared_ptr<Answer<absl::StatusOr<JoinResult>>> DirectoryConformance::StartJoin(Directory& directory,
                                                                                    const NodeInfo& node,
                                                                                    base::Duration lease,
                                                                                    base::Duration deadline) {
  return Start<absl::StatusOr<JoinResult>>([&](auto done) { directory.Join(node, lease, deadline, done); });
}

std::shared_ptr<Answer<absl::Status>> DirectoryConformance::StartAnnounce(Directory& directory,
                                                                          const std::string& object, uint64_t data,
                                                                          uint64_t metadata, const NodeId& node,
                                                                          base::Duration deadline) {
  return Start<absl::Status>(
      [&](auto done) { directory.Announce(ObjectId::FromName(object), data, metadata, node, deadline, done); });
}

std::shared_ptr<Answer<absl::StatusOr<ObjectInfo>>> DirectoryConformance::StartLocate(Directory& directory,
                                                                                      const std::string& object,
                                                                                      base::Duration wait,
                                                                                      base::Duration deadline) {
  return Start<absl::StatusOr<ObjectInfo>>(
      [&](auto done) { directory.Locate(ObjectId::FromName(object), wait, deadline, done); });
}

absl::StatusOr<JoinResult> DirectoryConformance::Join(const NodeInfo& node, base::Duration lease) {
  return Await(StartJoin(here(), node, lease, kDeadline));
}

absl::StatusOr<JoinResult> DirectoryConformance::Join(const NodeId& node, uint64_t incarnation, base::Duration lease) {
  return Join(Node(node, incarnation), lease);
}

absl::Status DirectoryConformance::Leave(const NodeId& node, uint64_t incarnation) {
  return Await(Start<absl::Status>([&](auto done) { here().Leave(node, incarnation, kDeadline, done); }));
}

absl::Status DirectoryConformance::Announce(const std::string& object, const NodeId& node, uint64_t data,
                                            uint64_t metadata) {
  return Await(StartAnnounce(here(), object, data, metadata, node, kDeadline));
}

absl::Status DirectoryConformance::Withdraw(const std::string& object, const NodeId& node) {
  return Await(
      Start<absl::Status>([&](auto done) { here().Withdraw(ObjectId::FromName(object), node, kDeadline, done); }));
}

absl::StatusOr<ObjectInfo> DirectoryConformance::Locate(const std::string& object, base::Duration wait) {
  return Await(StartLocate(here(), object, wait, kDeadline));
}

absl::StatusOr<std::vector<NodeInfo>> DirectoryConformance::Nodes() {
  return Await(Start<absl::StatusOr<std::vector<NodeInfo>>>([&](auto done) { here().Nodes(kDeadline, done); }));
}

std::vector<NodeId> DirectoryConformance::Holders(const std::string& object) {
  const absl::StatusOr<ObjectInfo> info = Locate(object);
  EXPECT_TRUE(info.ok() || absl::IsNotFound(info.status())) << info.status();
  std::vector<NodeId> holders = info.ok() ? info->holders : std::vector<NodeId>();
  std::sort(holders.begin(), holders.end());
  return holders;
}

std::vector<NodeId> DirectoryConformance::NodeIds() {
  std::vector<NodeId> ids;
  const auto nodes = Nodes();
  EXPECT_TRUE(nodes.ok()) << nodes.status();
  if (nodes.ok()) {
    for (const NodeInfo& node : *nodes) ids.push_back(node.id);
  }
  return ids;
}

}  // namespace tokamak::directory

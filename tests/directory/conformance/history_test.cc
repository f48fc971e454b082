// Random histories of nodes that put, pull, evict, delete and are restarted, and what must be true
// of all of them.
#include <map>
#include <optional>
#include <set>

#include "lib/base/random.h"
#include "tests/directory/conformance/fixture.h"

namespace tokamak::directory {

// A few nodes as a directory should find them: they drop the copies that the directory tells them
// to drop, and promise nothing else about their order.
class History final {
 public:
  // `name` tells its nodes and objects from those of other histories.
  History(DirectoryConformance& test, const std::string& name) : test_(test), name_(name + "-") {}

  void Run(uint64_t seed) {
    base::Random random(seed);
    for (int i = 0; i < kNodes; ++i) Restart(name_ + std::to_string(i));
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step));
      const NodeId node = name_ + std::to_string(random.Below(kNodes));
      const std::string object = name_ + std::to_string(random.Below(kObjects));
      switch (random.Below(8)) {
        case 0:
        case 1:
          Put(node, object);
          break;
        case 2:
        case 3:
          BeginPull(node, object);
          break;
        case 4:
          EndPull(node, random.Chance(0.8));
          break;
        case 5:
          random.Chance(0.1) ? Restart(node) : Evict(node);
          break;
        case 6:
          BeginDelete(object);
          break;
        case 7:
          EndDelete(object);
          break;
      }
    }
  }

 private:
  static constexpr int kNodes = 4, kObjects = 3, kSteps = 600;

  struct Node {
    uint64_t incarnation = 0;
    std::map<std::string, uint64_t> copies;  // object -> generation
    std::map<std::string, uint64_t> coming;
  };

  void Put(const NodeId& name, const std::string& object) {
    Node& node = nodes_[name];
    if (node.copies.count(object) != 0) return;
    const uint64_t generation = ++last_generation_;
    const absl::Status status = test_.Announce(name, object, generation);
    if (status.ok()) {
      EXPECT_TRUE(Owners(object).empty()) << object << " had another content";
      EXPECT_EQ(live_.count(object), 0u);
      live_[object] = generation;
      node.copies[object] = generation;
    } else {
      EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
      EXPECT_TRUE(live_.count(object) != 0 || deleting_.count(object) != 0) << object << " was free";
    }
  }

  void BeginPull(const NodeId& name, const std::string& object) {
    Node& node = nodes_[name];
    if (node.copies.count(object) != 0 || node.coming.count(object) != 0) return;
    const absl::StatusOr<LocatedObject> located = test_.Locate(object, {}, name);
    if (!located.ok()) {
      EXPECT_TRUE(absl::IsNotFound(located.status())) << located.status();
      return;
    }
    const auto generation = static_cast<uint64_t>(located->generation);
    EXPECT_EQ(generation, live_[object]) << "a deleted content was named";
    for (const NodeId& holder : located->holders) EXPECT_EQ(nodes_[holder].copies[object], generation);
    node.coming[object] = generation;
  }

  void EndPull(const NodeId& name, bool whole) {
    Node& node = nodes_[name];
    if (node.coming.empty()) return;
    const auto [object, generation] = *node.coming.begin();
    node.coming.erase(object);
    if (!whole) {
      EXPECT_TRUE(test_.Withdraw(name, object, generation).ok());
      return ForgetIfUnheld(object);
    }
    const absl::Status status = test_.Announce(name, object, generation, true);
    if (status.ok()) {
      EXPECT_EQ(generation, live_[object]) << "a deleted content came back";
      node.copies[object] = generation;
    } else {
      EXPECT_TRUE(absl::IsAborted(status)) << status;
      EXPECT_TRUE(test_.Withdraw(name, object, generation).ok());
    }
    ForgetIfUnheld(object);
  }

  void Evict(const NodeId& name) {
    Node& node = nodes_[name];
    if (node.copies.empty()) return;
    const auto [object, generation] = *node.copies.begin();
    node.copies.erase(object);
    EXPECT_TRUE(test_.Withdraw(name, object, generation).ok());
    ForgetIfUnheld(object);
  }

  void BeginDelete(const std::string& object) {
    const absl::StatusOr<DeleteReply> begun = test_.Delete(object);
    if (!begun.ok()) {
      EXPECT_TRUE(absl::IsNotFound(begun.status())) << begun.status();
      EXPECT_TRUE(live_.count(object) == 0 && deleting_.count(object) == 0);
      return;
    }
    const auto generation = static_cast<uint64_t>(begun->generation);
    if (live_.erase(object) != 0) deleting_[object] = generation;
    EXPECT_EQ(deleting_[object], generation);
  }

  // Tells those that the directory names, until it says that nobody holds it any more: then nobody
  // does.
  void EndDelete(const std::string& object) {
    const auto deleting = deleting_.find(object);
    if (deleting == deleting_.end()) return;
    const uint64_t generation = deleting->second;
    deleting_.erase(deleting);
    absl::StatusOr<DeleteReply> step = test_.Delete(object, generation);
    for (int steps = 0; step.ok() && !step->holders.empty() && steps < kNodes; ++steps) {
      for (const NodeId& holder : step->holders) Drop(nodes_[holder], object, generation);
      const Ids dropped = step->holders;
      step = test_.Delete(object, generation, dropped, dropped.back());
    }
    ASSERT_TRUE(step.ok()) << step.status();
    for (const auto& [name, node] : nodes_) {
      for (const auto& held : {node.copies, node.coming}) {
        const auto found = held.find(object);
        EXPECT_TRUE(found == held.end() || found->second != generation) << name << " was not told";
      }
    }
  }

  void Restart(const NodeId& name) {
    Node& node = nodes_[name];
    const Node lost = std::exchange(node, Node{node.incarnation + 1, {}, {}});
    EXPECT_TRUE(test_.Join(name, node.incarnation)->entered);
    for (const auto& [object, generation] : lost.copies) ForgetIfUnheld(object);
    for (const auto& [object, generation] : lost.coming) ForgetIfUnheld(object);
  }

  static void Drop(Node& node, const std::string& object, uint64_t generation) {
    for (auto* held : {&node.copies, &node.coming}) {
      const auto found = held->find(object);
      if (found != held->end() && found->second == generation) held->erase(found);
    }
  }

  // Who holds the live content, or is about to.
  std::set<NodeId> Owners(const std::string& object) const {
    std::set<NodeId> owners;
    const auto live = live_.find(object);
    for (const auto& [name, node] : nodes_) {
      for (const auto& held : {node.copies, node.coming}) {
        const auto found = held.find(object);
        if (found != held.end() && live != live_.end() && found->second == live->second) owners.insert(name);
      }
    }
    return owners;
  }
  // The id is free: nobody needs to delete what nobody has.
  void ForgetIfUnheld(const std::string& object) {
    if (Owners(object).empty()) live_.erase(object);
    const auto deleting = deleting_.find(object);
    if (deleting == deleting_.end()) return;
    for (const auto& [name, node] : nodes_) {
      for (const auto& held : {node.copies, node.coming}) {
        const auto found = held.find(object);
        if (found != held.end() && found->second == deleting->second) return;
      }
    }
    deleting_.erase(deleting);
  }

  DirectoryConformance& test_;
  const std::string name_;
  std::map<NodeId, Node> nodes_;
  std::map<std::string, uint64_t> live_;      // accepted, held and not deleted
  std::map<std::string, uint64_t> deleting_;  // told to the directory, not yet to all holders
  uint64_t last_generation_ = 0;
};

TEST_P(DirectoryConformance, NothingDeletedComesBackAndAnIdHasOneContent) {
  PassRecovery();
  for (const uint64_t seed : {1, 2, 3}) {
    History(*this, std::to_string(seed)).Run(seed);
  }
}

}  // namespace tokamak::directory

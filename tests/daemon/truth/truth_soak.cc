// Nodes and their directory stop, die, leave and come back for a long time, drawn from a seed;
// after each round everything is healed, and sim::History judges the programs' results. Run by
// ci/truth. A directory that loses its entries is not among the faults: sim/worlds/life.h has that.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/random.h"
#include "lib/node/cluster/membership.h"
#include "tests/daemon/truth/programs.h"
#include "tests/daemon/truth/redis_masters.h"
#include "tests/daemon/truth/witness.h"

namespace tokamak::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTroublesPerRound = 4;
// A get ends by its time-out; on a machine that runs all of this at once, a little later.
constexpr base::Duration kMostBeyond = base::Seconds(2);

// More than a node remembers of what it has to announce.
constexpr size_t kBurst = node::kMaxDirty + 4000;
constexpr size_t kPutAtOnce = 1000;
constexpr size_t kReadOneOf = 64;
constexpr size_t kDeleted = 300;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class TruthSoak : public RedisMasters {
 protected:
  struct Trouble {
    const char* name;
    std::function<void()> make;
  };

  void SetUp() override {
    drain_ = "120s";  // of a burst, too
    more_flags_ = {"--evacuate"};
    const uint64_t asked = FromEnvironment("TOKAMAK_SOAK_NODES", 0);
    nodes_.resize((asked != 0 ? asked : 3 + random_.Below(4)) + 1);
    RedisMasters::SetUp();
  }

  bool has_masters() const { return group_ != nullptr || is_cluster(); }

  // ---- the directory ----
  void FreezeDirectory() {
    if (GetParam() == DirectoryKind::kTokd) stood_still_.insert(1);
    StopDirectory();
    LetLive(Drawn(100, 6000));
    ContinueDirectory();
  }
  void KillMaster() {
    const size_t master = Master();
    const Reign before = ThisReign();
    server(master).Kill();
    ASSERT_TRUE(AwaitMasterOtherThan(master));
    LetLive(Drawn(500, 2000));
    server(master).Start();
    AwaitAllToldSince(before, *witness_);
  }
  // It may be replaced meanwhile, or not.
  void FreezeMaster() {
    const size_t master = Master();
    const Reign before = ThisReign();
    server(master).Freeze();
    LetLive(Drawn(100, 6000));
    server(master).Thaw();
    ASSERT_TRUE(AwaitReplicas());
    if (Master() != master) AwaitAllToldSince(before, *witness_);
  }
  void KillReplica() {
    const size_t master = Master();
    const size_t others = is_cluster() ? Cluster::kServers : directory::redis::RedisGroup::kServers;
    size_t replica = random_.Below(others);
    // A Redis Cluster: another master would be missed, too.
    while (replica == master || absl::StartsWith(*server(replica).Ask({"ROLE"}), "master")) {
      replica = (replica + 1) % others;
    }
    server(replica).Kill();
    LetLive(Drawn(500, 2000));
    server(replica).Start();
  }
  void KillSentinel() {
    const size_t sentinel = random_.Below(directory::redis::RedisGroup::kSentinels);
    group_->sentinel(sentinel).Kill();
    LetLive(Drawn(500, 3000));
    group_->sentinel(sentinel).Start();
  }

  // ---- nodes ----
  // The first is no node like the others where it is the directory.
  size_t AnyNode() {
    const size_t first = GetParam() == DirectoryKind::kTokd ? 2 : 1;
    const size_t node = first + random_.Below(nodes_.size() - first);
    std::cout << ", n" << node << std::flush;
    return node;
  }
  void KillNode(size_t node) {
    nodes_[node]->Kill();
    witness_->Lost(static_cast<uint32_t>(node));
    LetLive(Drawn(100, 1000));
    Start(static_cast<int>(node));
  }
  void FreezeNode(size_t node, base::Duration duration) {
    stood_still_.insert(node);
    nodes_[node]->Signal(SIGSTOP);
    LetLive(duration);
    // It was given up: others may have put what it held.
    if (duration > kLease + kGrace) witness_->Lost(static_cast<uint32_t>(node));
    nodes_[node]->Signal(SIGCONT);
  }
  void Leave(size_t node) {
    const int64_t begin = Witness::Now();
    const Ended ended = nodes_[node]->Terminate();
    witness_->Left(static_cast<uint32_t>(node), begin);
    EXPECT_EQ(ended.status.code, 0) << ended.text;
    EXPECT_FALSE(absl::StrContains(ended.text, "could not be saved")) << ended.text;
    Start(static_cast<int>(node));
  }

  // ---- programs ----
  // The directory hears nothing meanwhile in half of the cases; some is deleted on another node.
  void Burst() {
    if (burst_on_ != 0) return;
    burst_on_ = AnyNode();
    const auto node = static_cast<uint32_t>(burst_on_);
    const size_t other = burst_on_ == nodes_.size() - 1 ? 1 : burst_on_ + 1;
    const bool is_away = !has_masters() && random_.Chance(0.5);
    Client client = Connect(static_cast<int>(node));
    std::vector<std::string> put;
    if (is_away && GetParam() == DirectoryKind::kTokd) stood_still_.insert(1);
    if (is_away) StopDirectory();
    while (put.size() < kBurst) {
      std::vector<std::string> ids;
      for (size_t i = 0; i < kPutAtOnce; ++i) ids.push_back(absl::StrCat("burst", bursts_, "-", put.size() + i));
      witness_->PutSmall(client, node, ids);
      put.insert(put.end(), ids.begin(), ids.end());
    }
    if (is_away) ContinueDirectory();
    Client deleter = Connect(static_cast<int>(other));
    for (size_t i = 0; i < kDeleted; ++i) {
      (void)witness_->Delete(deleter, static_cast<uint32_t>(other), put[random_.Below(put.size())]);
    }
    for (size_t i = random_.Below(kReadOneOf); i < put.size(); i += kReadOneOf) more_ids_.push_back(put[i]);
    ++bursts_;
  }
  // The next has room again.
  void EndBurst() {
    if (burst_on_ == 0) return;
    nodes_[burst_on_]->Kill();
    Start(static_cast<int>(burst_on_));
    burst_on_ = 0;
  }

  base::Duration Drawn(uint64_t least, uint64_t most) {
    return base::Milliseconds(static_cast<int64_t>(least + random_.Below(most - least)));
  }

  base::Random random_{FromEnvironment("TOKAMAK_SOAK_SEED", 1)};
  std::unique_ptr<Witness> witness_;
  std::set<size_t> stood_still_;       // nodes, in this round
  std::vector<std::string> more_ids_;  // of bursts in this round
  size_t burst_on_ = 0;                // the node that has them
  size_t bursts_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Directory, TruthSoak,
                         testing::Values(DirectoryKind::kTokd, DirectoryKind::kRedis, DirectoryKind::kSentinel,
                                         DirectoryKind::kCluster),
                         NameOfDirectory);

TEST_P(TruthSoak, Runs) {
  std::vector<Trouble> troubles = {
      {"node killed", [this] { KillNode(AnyNode()); }},
      {"node frozen", [this] { FreezeNode(AnyNode(), Drawn(100, 3000)); }},
      {"node given up", [this] { FreezeNode(AnyNode(), kLease + kGrace + Drawn(500, 1500)); }},
      {"node leaves", [this] { Leave(AnyNode()); }},
      {"burst", [this] { Burst(); }},
  };
  if (has_masters()) {
    troubles.push_back({"master killed", [this] { KillMaster(); }});
    troubles.push_back({"master frozen", [this] { FreezeMaster(); }});
    troubles.push_back({"replica killed", [this] { KillReplica(); }});
  } else {
    troubles.push_back({"directory frozen", [this] { FreezeDirectory(); }});
  }
  if (group_ != nullptr) troubles.push_back({"Sentinel killed", [this] { KillSentinel(); }});

  if (const char* const names = std::getenv("TOKAMAK_SOAK_TROUBLES"); names != nullptr && *names != '\0') {
    const std::set<std::string> asked = absl::StrSplit(names, ',');
    troubles.erase(std::remove_if(troubles.begin(), troubles.end(),
                                  [&asked](const Trouble& trouble) { return asked.count(trouble.name) == 0; }),
                   troubles.end());
  }
  ASSERT_FALSE(troubles.empty());
  const auto end = Clock::now() + std::chrono::seconds(FromEnvironment("TOKAMAK_SOAK_SECONDS", 60));
  uint64_t series = 0;
  std::cout << nodes_.size() - 1 << " nodes\n";
  for (int round = 1; Clock::now() < end && !HasFailure(); ++round) {
    witness_ = std::make_unique<Witness>();
    stood_still_.clear();
    more_ids_.clear();
    std::vector<std::string> ids;
    std::cout << "round " << round << ":";
    base::Duration beyond;
    {
      Programs programs(*witness_, nodes_, series);
      for (int i = 0; i < kTroublesPerRound && !HasFatalFailure(); ++i) {
        LetLive(Drawn(500, 2000));
        if (has_masters()) {
          ASSERT_TRUE(AwaitReplicas());
        }
        const Trouble& trouble = troubles[random_.Below(troubles.size())];
        std::cout << "\n  " << Witness::Now() << " " << trouble.name << std::flush;
        trouble.make();
      }
      LetLive(base::Seconds(2));
      ids = programs.AllIds();
      series = programs.series() + 1;
      beyond = programs.longest_beyond_deadline(stood_still_);
    }
    const auto healing = Clock::now();
    AwaitHealed();
    std::cout << "\n  healed " << std::fixed << std::setprecision(1)
              << std::chrono::duration<double>(Clock::now() - healing).count()
              << " s after the last program; a get took " << beyond.milliseconds()
              << " ms beyond its time-out at most\n";
    EXPECT_LT(beyond, kMostBeyond);
    const std::vector<std::string> kept = ids;
    ids.insert(ids.end(), more_ids_.begin(), more_ids_.end());
    ReadAllAndJudge(*witness_, ids);
    std::cout << witness_->Summary() << std::flush;
    EndBurst();
    AwaitHealed();
    // The next round has room.
    Client client = Connect(1);
    for (const std::string& id : kept) (void)client.Delete(Id(id));
  }
}

}  // namespace
}  // namespace tokamak::daemon

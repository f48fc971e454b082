// Masters, replicas, Sentinels and nodes come and go for a long time, drawn from a seed; after each
// round everything is healed, and sim::History judges what the programs were told. Run by
// ci/redis_failover.
#include <gtest/gtest.h>
#include <signal.h>

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
#include "lib/base/random.h"
#include "tests/daemon/programs.h"
#include "tests/daemon/redis_masters.h"
#include "tests/daemon/witness.h"

namespace tokamak::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTroublesPerRound = 4;
// A get ends by its time-out; on a machine that runs all of this at once, a little later.
constexpr base::Duration kMostBeyond = base::Seconds(2);

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class RedisSoak : public RedisMasters {
 protected:
  struct Trouble {
    const char* name;
    std::function<void()> make;
  };

  void KillMaster() {
    const size_t master = Master();
    server(master).Kill();
    ASSERT_TRUE(AwaitMasterOtherThan(master));
    LetLive(Drawn(500, 2000));
    server(master).Start();
  }
  // It may be replaced meanwhile, or not.
  void FreezeMaster() {
    const size_t master = Master();
    server(master).Freeze();
    LetLive(Drawn(100, 6000));
    server(master).Thaw();
  }
  void KillReplica() {
    const size_t master = Master();
    const size_t others = is_cluster() ? Cluster::kServers : directory::redis::RedisGroup::kServers;
    size_t replica = random_.Below(others);
    // Of a Redis Cluster: another master would be missed, too.
    while (replica == master || absl::StartsWith(*server(replica).Ask({"ROLE"}), "master")) {
      replica = (replica + 1) % others;
    }
    server(replica).Kill();
    LetLive(Drawn(500, 2000));
    server(replica).Start();
  }
  void KillSentinel() {
    if (is_cluster()) return;
    const size_t sentinel = random_.Below(directory::redis::RedisGroup::kSentinels);
    group_->sentinel(sentinel).Kill();
    LetLive(Drawn(500, 3000));
    group_->sentinel(sentinel).Start();
  }
  void KillNode() {
    const int node = 1 + static_cast<int>(random_.Below(kNodes));
    nodes_[static_cast<size_t>(node)]->Kill();
    witness_->Lost(static_cast<uint32_t>(node));
    LetLive(Drawn(100, 1000));
    Start(node);
  }
  void FreezeNode() {
    const size_t node = 1 + random_.Below(kNodes);
    stood_still_.insert(node);
    nodes_[node]->Signal(SIGSTOP);
    LetLive(Drawn(100, 3000));
    nodes_[node]->Signal(SIGCONT);
  }
  base::Duration Drawn(uint64_t least, uint64_t most) {
    return base::Milliseconds(static_cast<int64_t>(least + random_.Below(most - least)));
  }

  base::Random random_{FromEnvironment("TOKAMAK_SOAK_SEED", 1)};
  std::unique_ptr<Witness> witness_;
  std::set<size_t> stood_still_;  // nodes, in this round
};

INSTANTIATE_TEST_SUITE_P(Directory, RedisSoak, testing::Values(DirectoryKind::kSentinel, DirectoryKind::kCluster),
                         NameOfDirectory);

TEST_P(RedisSoak, Runs) {
  const std::vector<Trouble> troubles = {
      {"master killed", [this] { KillMaster(); }},   {"master frozen", [this] { FreezeMaster(); }},
      {"replica killed", [this] { KillReplica(); }}, {"Sentinel killed", [this] { KillSentinel(); }},
      {"node killed", [this] { KillNode(); }},       {"node frozen", [this] { FreezeNode(); }},
  };
  const auto end = Clock::now() + std::chrono::seconds(FromEnvironment("TOKAMAK_SOAK_SECONDS", 60));
  uint64_t series = 0;
  for (int round = 1; Clock::now() < end && !HasFailure(); ++round) {
    witness_ = std::make_unique<Witness>();
    stood_still_.clear();
    std::vector<std::string> ids;
    std::cout << "round " << round << ":";
    base::Duration beyond;
    {
      Programs programs(*witness_, nodes_, series);
      for (int i = 0; i < kTroublesPerRound && !HasFatalFailure(); ++i) {
        LetLive(Drawn(500, 2000));
        ASSERT_TRUE(AwaitReplicas());
        const Trouble& trouble = troubles[random_.Below(troubles.size())];
        std::cout << " " << trouble.name << "," << std::flush;
        trouble.make();
      }
      LetLive(base::Seconds(2));
      ids = programs.AllIds();
      series = programs.series() + 1;
      beyond = programs.longest_beyond_deadline(stood_still_);
    }
    const auto healing = Clock::now();
    AwaitHealed();
    std::cout << " healed " << std::fixed << std::setprecision(1)
              << std::chrono::duration<double>(Clock::now() - healing).count()
              << " s after the last program; a get took " << beyond.milliseconds()
              << " ms beyond its time-out at most\n";
    EXPECT_LT(beyond, kMostBeyond);
    ReadAllAndJudge(*witness_, ids);
    std::cout << witness_->Summary() << std::flush;
  }
}

}  // namespace
}  // namespace tokamak::daemon

// Redis as people run it: a master that is killed, that stalls, that is cut off and comes back,
// while programs put, get and delete. sim::History judges their results.
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <vector>

#include "tests/daemon/truth/programs.h"
#include "tests/daemon/truth/redis_masters.h"
#include "tests/daemon/truth/witness.h"

namespace tokamak::daemon {
namespace {

using RedisFailoverTest = RedisMasters;

INSTANTIATE_TEST_SUITE_P(Directory, RedisFailoverTest,
                         testing::Values(DirectoryKind::kSentinel, DirectoryKind::kCluster), NameOfDirectory);

TEST_P(RedisFailoverTest, PromisesHoldWhileMastersComeAndGo) {
  Witness witness;
  std::vector<std::string> ids;
  {
    Programs programs(witness, nodes_);
    LetLive(base::Seconds(2));

    const size_t first = Master();
    const Reign first_reign = ThisReign();
    server(first).Kill();
    ASSERT_TRUE(AwaitMasterOtherThan(first));
    LetLive(base::Seconds(2));
    server(first).Start();
    AwaitAllToldSince(first_reign, witness);

    nodes_[2]->Kill();
    witness.Lost(2);
    LetLive(base::Milliseconds(500));
    Start(2);
    LetLive(base::Seconds(1));

    // It does not know that it was replaced.
    const size_t second = Master();
    const Reign second_reign = ThisReign();
    server(second).Freeze();
    ASSERT_TRUE(AwaitMasterOtherThan(second));
    LetLive(base::Seconds(1));
    server(second).Thaw();
    AwaitAllToldSince(second_reign, witness);
    LetLive(base::Seconds(3));
    ids = programs.AllIds();
    // A get ends by its time-out; on this machine, which runs all of it at once, a little later.
    EXPECT_LT(programs.longest_beyond_deadline(), base::Seconds(2));
  }
  AwaitHealed();
  ReadAllAndJudge(witness, ids);

  using sim::Operation;
  EXPECT_GT(witness.Count(Operation::Kind::kGet, Operation::Outcome::kOk), 200u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kPut, Operation::Outcome::kOk), 20u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kDelete, Operation::Outcome::kOk), 20u) << witness.Summary();
  std::cout << witness.Summary();
}

}  // namespace
}  // namespace tokamak::daemon

// Runs: what they promise whatever the scenario.
#include "sim/scenario/run.h"

#include "sim/scenario/load/ideal_time.h"
#include "tests/sim/scenario/finished_run.h"

namespace tokamak::sim {
namespace {

std::string AllCsv(const FinishedRun& run) {
  return TransfersCsv(run.run()) + PortsCsv(run.run()) + QueuesCsv(run.run()) + RatesCsv(run.run());
}

TEST(RunTest, TheSameSeedGivesTheSameBytesAndAnotherOneOthers) {
  const std::vector<std::string> small = {"workload.0.bytes=200KB"};
  const std::string first = AllCsv(FinishedRun("fattree_permutation", small));
  EXPECT_EQ(AllCsv(FinishedRun("fattree_permutation", small)), first);
  EXPECT_NE(AllCsv(FinishedRun("fattree_permutation", {"workload.0.bytes=200KB", "seed=2"})), first);
}

TEST(RunTest, PayloadWithAndWithoutBytesTakesTheSameTime) {
  const FinishedRun phantom("incast16", {"workload.0.bytes=100KB"});
  const FinishedRun real("incast16", {"workload.0.bytes=100KB", "payload=real"});
  EXPECT_EQ(AllCsv(phantom), AllCsv(real));
  EXPECT_TRUE(real.run().traffic().PayloadIsRight());
}

TEST(RunTest, EveryVerbCarriesEveryPattern) {
  for (const char* verb : {"write", "read", "send"}) {
    for (const char* kind : {"incast", "fan-out", "shuffle", "all-reduce-ring", "permutation"}) {
      SCOPED_TRACE(std::string(verb) + " " + kind);
      const FinishedRun run("incast16", {"topology.hosts=4", "payload=real",
                                         "workload=[{\"kind\": \"" + std::string(kind) +
                                             "\", \"bytes\": 30000, \"verb\": \"" + verb + "\"}]"});
      EXPECT_EQ(run.ending(), Run::Ending::kFinished);
    }
  }
}

TEST(RunTest, ARingIsAsSlowAsItsRounds) {
  const FinishedRun run("two_hosts",
                        {"topology.hosts=4", "workload=[{\"kind\": \"all-reduce-ring\", \"bytes\": \"1MB\"}]"});
  ASSERT_EQ(run.run().scenario().transfers.size(), 24u);
  // Nobody is in another's way, so each round begins when the one before has ended everywhere.
  const int64_t took = (run.run().end() - run.run().begin()).picoseconds();
  EXPECT_EQ(took, 6 * run.picoseconds(0));
}

TEST(RunTest, AFailureIsReportedAndBlocksItsDependents) {
  const FinishedRun run("lossy", {"topology.cables.0.loss.rate=1", "nic.retries=1", "workload.0.count=3"});
  EXPECT_EQ(run.ending(), Run::Ending::kFailed);
  const auto& progress = run.run().traffic().progress();
  EXPECT_EQ(progress[0].state, Traffic::State::kFailed);
  EXPECT_EQ(progress[0].status, verbs::ToString(verbs::CompletionStatus::kRetryExceeded));
  EXPECT_EQ(progress[2].state, Traffic::State::kBlocked);
}

TEST(RunTest, ADurationIsABound) {
  const FinishedRun run("incast16", {"duration=50us"});
  EXPECT_EQ(run.ending(), Run::Ending::kDuration);
  EXPECT_EQ((run.run().end() - run.run().begin()).microseconds(), 50);
}

TEST(RunTest, SamplesAreThinnedAndKeepTheWholeTime) {
  const FinishedRun run("incast16", {"workload.0.bytes=200KB", "outputs.most_samples=20"});
  const auto& samples = run.run().sampler().samples();
  EXPECT_LE(samples.size(), 21u);
  EXPECT_GE(samples.size(), 10u);
  EXPECT_EQ(samples.back().time, run.run().end() - run.run().begin());
  EXPECT_EQ(run.sent(0), 16 * 200'000u);
}

TEST(RunTest, PoissonArrivalsEnd) {
  const FinishedRun run("poisson", {"workload.0.transfers=40"});
  EXPECT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_GE(run.slowdown("poisson"), 1.0);
}

}  // namespace
}  // namespace tokamak::sim

// Scenarios whose transfers go through the store.
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/sim/scenario/finished_run.h"

namespace tokamak::sim {
namespace {

std::string AllStoreCsv(const FinishedRun& run) {
  return TransfersCsv(run.run()) + PortsCsv(run.run()) + QueuesCsv(run.run()) + RatesCsv(run.run());
}

const Traffic::Progress& ProgressOf(const FinishedRun& run, size_t transfer) {
  return run.run().traffic().progress()[transfer];
}

// Few and small objects.
std::vector<std::string> SmallShuffle(const std::string& bytes) {
  return {"topology.leaves=2", "topology.spines=2", "topology.hosts_per_leaf=3", "workload.0.bytes=" + bytes,
          "store.memory=16MiB"};
}

std::vector<std::string> With(std::vector<std::string> changes, const std::string& more) {
  changes.push_back(more);
  return changes;
}

TEST(StoreScenarioTest, AShuffleArrivesByEachProtocol) {
  for (const char* protocol : {"eager", "read", "write"}) {
    SCOPED_TRACE(protocol);
    const FinishedRun run("store_shuffle64",
                          With(With(SmallShuffle("70001"), "payload=real"), absl::StrCat("store.policy=", protocol)));
    ASSERT_EQ(run.ending(), Run::Ending::kFinished);
    EXPECT_TRUE(run.run().PayloadIsRight());
    const nlohmann::json& group = run.summary()["groups"]["shuffle"];
    EXPECT_EQ(group["protocols"].size(), 1u);
    EXPECT_EQ(group["protocols"][protocol]["finished"], 30);
    EXPECT_GT(run.slowdown("shuffle"), 1.0);
  }
}

TEST(StoreScenarioTest, APolicyPicksBySizeAndAGroupMayNameAProtocol) {
  const FinishedRun run("store_trace",
                        {"store.policy=eager:16KiB,write",
                         R"(workload=[{"kind": "flow", "name": "small", "through": "store", "bytes": 9000},
                                          {"kind": "flow", "name": "large", "through": "store", "bytes": 90000},
                                          {"kind": "flow", "name": "asked", "through": "store", "protocol": "read"}])"});
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_EQ(ProgressOf(run, 0).report.protocol, transport::Protocol::kEager);
  EXPECT_EQ(ProgressOf(run, 1).report.protocol, transport::Protocol::kWrite);
  EXPECT_EQ(ProgressOf(run, 2).report.protocol, transport::Protocol::kRead);
}

TEST(StoreScenarioTest, PayloadWithAndWithoutBytesTakesTheSameTime) {
  for (const char* protocol : {"eager", "read", "write"}) {
    const auto small = With(SmallShuffle("50KB"), absl::StrCat("store.policy=", protocol));
    EXPECT_EQ(AllStoreCsv(FinishedRun("store_shuffle64", small)),
              AllStoreCsv(FinishedRun("store_shuffle64", With(small, "payload=real"))))
        << protocol;
  }
}

TEST(StoreScenarioTest, TheSameSeedGivesTheSameBytes) {
  const auto small = SmallShuffle("50KB");
  EXPECT_EQ(AllStoreCsv(FinishedRun("store_shuffle64", small)), AllStoreCsv(FinishedRun("store_shuffle64", small)));
}

TEST(StoreScenarioTest, LaterGetsFindCopiesOfAHotObject) {
  const FinishedRun run("store_hot_object");
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  std::set<uint32_t> at_once, by_and_by;
  for (size_t i = 0; i < 16; ++i) at_once.insert(*ProgressOf(run, i).report.holder);
  for (size_t i = 16; i < 32; ++i) by_and_by.insert(*ProgressOf(run, i).report.holder);
  EXPECT_EQ(at_once, std::set<uint32_t>{0});
  EXPECT_GT(by_and_by.size(), 1u);
  EXPECT_LT(run.slowdown("by and by") * 2, run.slowdown("at once"));
}

TEST(StoreScenarioTest, ATraceHasPutsAndGetsThatWaitOrFindTheObjectThere) {
  const FinishedRun run("store_trace", {"payload=real"});
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_TRUE(run.run().PayloadIsRight());
  const auto& transfers = run.run().scenario().transfers;
  ASSERT_EQ(transfers.size(), 8u);
  EXPECT_EQ(transfers[0].way, Transfer::Way::kPut);
  EXPECT_GT(ProgressOf(run, 2).finish, ProgressOf(run, 3).finish);  // the get after the put
  EXPECT_EQ(ProgressOf(run, 6).report.holder, std::nullopt);
  const std::vector<std::string> rows = absl::StrSplit(TransfersCsv(run.run()), '\n');
  EXPECT_NE(rows[1].find(",put,finished,0.000,"), std::string::npos) << rows[1];
  for (size_t row : {7, 8}) EXPECT_NE(rows[row].find(",,,local,"), std::string::npos) << rows[row];
}

TEST(StoreScenarioTest, HostsWithSeveralNicsHaveOneNodeAndUseThemAll) {
  const FinishedRun run("store_trace",
                        {R"(topology={"generator": "rail-optimised", "hosts": 3, "rails": 2})",
                         R"(workload=[{"kind": "shuffle", "through": "store", "bytes": "8MiB"}])", "payload=real"});
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_EQ(run.run().scenario().transfers.size(), 6u);
  EXPECT_TRUE(run.run().PayloadIsRight());
  for (uint32_t interface = 0; interface < 6; ++interface) {
    uint64_t bytes = 0;
    for (const PriorityCounters& one : run.run().fabric().interface_at(interface).counters().priorities) {
      bytes += one.received_bytes;
    }
    EXPECT_GT(bytes, 1'000'000u) << interface;
  }
}

TEST(StoreScenarioTest, MessagesAndTheStoreShareNics) {
  const FinishedRun run("store_trace", {R"(workload=[{"kind": "incast", "bytes": "1MB"},
                                          {"kind": "incast", "name": "gets", "through": "store", "bytes": "1MB"}])"});
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_GT(run.slowdown("incast"), 3.0);
  EXPECT_GT(run.slowdown("gets"), 3.0);
}

TEST(StoreScenarioTest, ConnectionsMadeWhenNeededCostTheFirstGetsTime) {
  const std::string flow =
      R"(workload=[{"kind": "flow", "from": "host1", "to": "host2", "through": "store", "count": 2}])";
  const FinishedRun before("store_trace", {flow});
  const FinishedRun needed("store_trace", {flow, "store.connections=when-needed"});
  EXPECT_LT(before.picoseconds(0), needed.picoseconds(0));
  // But for the window of messages, which has not grown yet.
  EXPECT_NEAR(static_cast<double>(before.picoseconds(1)), static_cast<double>(needed.picoseconds(1)), 100e3);
}

TEST(StoreScenarioTest, APutWithoutRoomFailsAndIsReported) {
  const FinishedRun run("store_trace", {"store.memory=1MiB", "duration=20ms"});
  EXPECT_EQ(ProgressOf(run, 0).state, Traffic::State::kFailed);
  EXPECT_EQ(ProgressOf(run, 0).status, "RESOURCE_EXHAUSTED");
  EXPECT_NE(run.ending(), Run::Ending::kFinished);
}

}  // namespace
}  // namespace tokamak::sim

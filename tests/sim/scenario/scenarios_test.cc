// The shipped scenarios, some made smaller: each shows what it is for.
#include <algorithm>

#include "sim/costs/closed_form.h"
#include "sim/costs/presets.h"
#include "tests/sim/scenario/finished_run.h"

namespace tokamak::sim {
namespace {

TEST(ScenariosTest, TwoHostsAreExactAndAsFastAsIdeal) {
  const FinishedRun run("two_hosts");
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_EQ(run.picoseconds(0), 4'039'680);
  EXPECT_EQ(run.picoseconds(1), 4'684'800);
  EXPECT_EQ(run.picoseconds(2), 9'698'400);
  EXPECT_EQ(run.picoseconds(3), 89'916'000);
  EXPECT_EQ(run.picoseconds(4), 9'698'720);
  for (const std::string& group : run.run().scenario().groups) EXPECT_DOUBLE_EQ(run.slowdown(group), 1.0) << group;
}

TEST(ScenariosTest, AnIncastLosesNothingAndDcqcnKeepsTheQueueShort) {
  const FinishedRun plain("incast16", {"nic.congestion=fixed"});
  const FinishedRun dcqcn("incast16");
  for (const FinishedRun* run : {&plain, &dcqcn}) {
    EXPECT_EQ(run->ending(), Run::Ending::kFinished);
    EXPECT_EQ(run->network("lost"), 0);
    EXPECT_EQ(run->summary()["network"]["drops"], nlohmann::json::object());
    EXPECT_EQ(run->nics("packets_retransmitted"), 0);
  }
  // The receiver's cable is never idle.
  const double bytes = 16 * 2e6 * (1024 + 82) / 1024;
  EXPECT_NEAR(plain.summary()["simulated_us"].get<double>(), bytes * 80e-6, 10);
  EXPECT_GT(dcqcn.network("marked"), 0);
  const auto waiting = [](const FinishedRun& run) {  // on average
    uint64_t sum = 0;
    for (const Sampler::Sample& sample : run.run().sampler().samples()) {
      for (const Sampler::PortSample& port : sample.ports) sum += port.queued;
    }
    return sum / run.run().sampler().samples().size();
  };
  EXPECT_LT(waiting(dcqcn) * 2, waiting(plain));
}

TEST(ScenariosTest, PfcAloneHurtsAVictimAndDcqcnSparesIt) {
  const std::vector<std::string> small = {"workload.0.bytes=2MB", "workload.1.bytes=4MB"};
  std::vector<std::string> pfc = small;
  pfc.push_back("nic.congestion=fixed");
  const FinishedRun plain("victim", pfc);
  const FinishedRun dcqcn("victim", small);
  EXPECT_GT(plain.slowdown("victim"), 2.5);
  EXPECT_LT(dcqcn.slowdown("victim"), 1.1);
  EXPECT_LT(dcqcn.network("paused_us") * 3, plain.network("paused_us"));
}

// The shares of what each sent while all of them wanted to.
TEST(ScenariosTest, AParkingLotIsUnfairWithPfcAloneAndDcqcnRepairsIt) {
  const FinishedRun plain("parking_lot", {"nic.congestion=fixed", "duration=3ms"});
  const FinishedRun dcqcn("parking_lot", {"duration=3ms"});
  const auto unfairness = [](const FinishedRun& run) {
    const auto [least, most] = std::minmax({run.sent(0), run.sent(1), run.sent(2)});
    return static_cast<double>(most) / static_cast<double>(least);
  };
  EXPECT_GT(unfairness(plain), 1.8);
  EXPECT_LT(unfairness(dcqcn), 1.5);
}

TEST(ScenariosTest, LossesCostMoreWithGoBackN) {
  const FinishedRun back("lossy");
  const FinishedRun selective("lossy", {"nic.recovery=selective-repeat"});
  for (const FinishedRun* run : {&back, &selective}) {
    EXPECT_EQ(run->ending(), Run::Ending::kFinished);
    EXPECT_GT(run->network("lost"), 5);
  }
  EXPECT_GT(back.nics("packets_retransmitted"), 5 * back.network("lost"));
  EXPECT_LT(selective.nics("packets_retransmitted"), 3 * selective.network("lost"));
  EXPECT_GT(back.slowdown("flow"), 1.02);
  EXPECT_LT(selective.slowdown("flow"), back.slowdown("flow"));
}

TEST(ScenariosTest, APermutationOnAFatTreeMeetsOnCables) {
  const FinishedRun run("fattree_permutation", {"workload.0.bytes=300KB"});
  EXPECT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_EQ(run.run().scenario().transfers.size(), 16u);
  EXPECT_GE(run.slowdown("permutation"), 1.0);
  EXPECT_LT(run.slowdown("permutation"), 4.0);
  EXPECT_EQ(run.summary()["network"]["drops"], nlohmann::json::object());
}

// A sixteenth of the bytes that the file asks for.
TEST(ScenariosTest, AFanOutToAThousandHostsKeepsItsCableBusy) {
  const FinishedRun run("fattree_fanout", {"workload.0.bytes=64KiB"});
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_EQ(run.run().scenario().transfers.size(), 1023u);
  EXPECT_EQ(run.network("lost"), 0);
  EXPECT_EQ(run.nics("packets_retransmitted"), 0) << "each connection asks in time for its acknowledgements";
  // Nobody else sends, so there is nothing to wait for.
  const double packets = 1023 * 64;
  const double wire = 80e-6 * (packets * (1024 + 82) + 1023 * 16);
  EXPECT_GT(run.summary()["simulated_us"].get<double>(), wire);
  EXPECT_LT(run.summary()["simulated_us"].get<double>(), 1.01 * wire);
}

TEST(ScenariosTest, AShuffleOfSixtyFourHostsLosesNothing) {
  const FinishedRun run("shuffle64", {"workload.0.bytes=16KiB"});
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_EQ(run.run().scenario().transfers.size(), size_t{64 * 63});
  EXPECT_EQ(run.network("lost"), 0);
  EXPECT_EQ(run.summary()["network"]["drops"], nlohmann::json::object());
  // The least time that each host's cable needs, and not three times as long.
  const double wire = 80e-6 * 63 * (16 * (1024 + 82) + 16);
  EXPECT_GT(run.summary()["simulated_us"].get<double>(), wire);
  EXPECT_LT(run.summary()["simulated_us"].get<double>(), 3 * wire);
}

// With a quarter of the partners, and a thirty-second of the bytes.
TEST(ScenariosTest, AThousandHostsShuffleWithSomePartnersEach) {
  const FinishedRun run("fattree_shuffle", {"workload.0.partners=4", "workload.0.bytes=2KiB"});
  ASSERT_EQ(run.ending(), Run::Ending::kFinished);
  std::vector<int> sends(1024);
  std::vector<int> receives(1024);
  for (const Transfer& transfer : run.run().scenario().transfers) {
    EXPECT_NE(transfer.from, transfer.to);
    ++sends[transfer.from];
    ++receives[transfer.to];
  }
  EXPECT_EQ(sends, std::vector<int>(1024, 4));
  EXPECT_EQ(receives, sends);
  EXPECT_EQ(run.network("lost"), 0);
}

TEST(ScenariosTest, ACycleOfFullBuffersFreezesAndIsNoticed) {
  const FinishedRun run("cyclic");
  EXPECT_EQ(run.ending(), Run::Ending::kFrozen);
  EXPECT_EQ(run.summary()["ending"], "frozen");
  // All five switches wait for their successor.
  size_t switches = 0;
  for (const std::string& queue : run.run().PausedQueues()) switches += queue.find("host") == std::string::npos ? 1 : 0;
  EXPECT_EQ(switches, 5u);
}

TEST(ScenariosTest, TheSameCycleWithDcqcnComesToItsEnd) {
  const FinishedRun run("cyclic", {"nic.congestion=dcqcn", "topology.switch.ecn={\"kmin\": 10000, \"kmax\": 50000}"});
  EXPECT_EQ(run.ending(), Run::Ending::kFinished);
}

// The mean time of a get, in microseconds.
double TimeOfGets(const std::string& protocol, uint32_t senders, const std::string& bytes,
                  const std::string& costs = "cx6-200g") {
  const FinishedRun run("thresholds", {"workload.0.protocol=" + protocol, "workload.0.bytes=" + bytes, "costs=" + costs,
                                       "workload.0.senders=" + std::to_string(senders)});
  EXPECT_EQ(run.ending(), Run::Ending::kFinished);
  EXPECT_EQ(run.nics("packets_retransmitted"), 0);
  return run.summary()["groups"]["gets"]["completion_us"]["mean"].get<double>();
}

TEST(ScenariosTest, ReadTakesOverFromEagerAt16KiBAloneAndAt2KiBUnderIncast) {
  EXPECT_LT(TimeOfGets("eager", 1, "8KiB"), TimeOfGets("read", 1, "8KiB"));
  EXPECT_GT(TimeOfGets("eager", 1, "16KiB"), TimeOfGets("read", 1, "16KiB"));
  EXPECT_LT(TimeOfGets("eager", 16, "1KiB"), TimeOfGets("read", 16, "1KiB"));
  EXPECT_GT(TimeOfGets("eager", 16, "2KiB"), TimeOfGets("read", 16, "2KiB"));
}

// By a memory window: a target that has to be registered costs 16 us more.
TEST(ScenariosTest, WriteSavesTheRoundTripOfReadAloneWhateverHostsCost) {
  for (const char* bytes : {"1KiB", "1MiB"}) {
    EXPECT_LT(TimeOfGets("write", 1, bytes), TimeOfGets("read", 1, bytes) - 3.9) << bytes;
    EXPECT_LT(TimeOfGets("write", 1, bytes, "zero"), TimeOfGets("read", 1, bytes, "zero") - 4) << bytes;
  }
  EXPECT_GT(TimeOfGets("write", 16, "1MiB"), TimeOfGets("read", 16, "1MiB")) << "nobody paces the owners";
}

// Parts of a get beside its pull: the program's messages with its node, and the directory's answer.
TEST(ScenariosTest, AGetTakesItsPullInClosedFormAndTheSameTimeBesideItWhateverItsSize) {
  const HostCosts& costs = ShippedPresets().at("cx6-200g");
  const auto beside = [&](const std::string& protocol, PullBy by, const std::string& bytes, uint64_t size) {
    return TimeOfGets(protocol, 1, bytes) - PullTime(by, size, costs, {}).seconds() * 1e6;
  };
  const double of_small = beside("eager", PullBy::kEager, "4KiB", 4096);
  EXPECT_GT(of_small, 10 + 4);  // the client's round trip, and the directory's on the network
  EXPECT_LT(of_small, 10 + 6);
  EXPECT_NEAR(beside("read", PullBy::kRead, "64KiB", 64 << 10), of_small, 0.2);
  EXPECT_NEAR(beside("write", PullBy::kWrite, "1MiB", 1 << 20), of_small, 0.5);
}

}  // namespace
}  // namespace tokamak::sim

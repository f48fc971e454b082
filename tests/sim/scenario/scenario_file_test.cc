// Scenarios from files: correct ones are read, mistakes are reported in a sentence.
#include "sim/scenario/scenario_file.h"

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "sim/json/json_object.h"
#include "sim/scenario/size_distribution.h"

namespace tokamak::sim {
namespace {

using nlohmann::json;

constexpr char kStar[] = R"("topology": {"generator": "star", "hosts": 5})";

absl::StatusOr<Scenario> Parse(const std::string& members) {
  const absl::StatusOr<json> value = ParseJson("{" + members + "}");
  if (!value.ok()) return value.status();
  return ScenarioFromJson(*value, testing::TempDir());
}

Scenario Star(const std::string& workload) {
  auto scenario = Parse(std::string(kStar) + R"(, "workload": [)" + workload + "]");
  EXPECT_TRUE(scenario.ok()) << scenario.status();
  return scenario.ok() ? *scenario : Scenario();
}

std::string Wrong(const std::string& members) { return std::string(Parse(members).status().message()); }
std::string WrongWith(const std::string& members) {
  return Wrong(std::string(kStar) + R"(, "workload": [{"kind": "incast"}], )" + members);
}
std::string WrongWorkload(const std::string& workload) {
  return Wrong(std::string(kStar) + R"(, "workload": [)" + workload + "]");
}

std::string WriteFile(const std::string& name, const std::string& text) {
  std::ofstream(testing::TempDir() + "/" + name) << text;
  return name;
}

TEST(ScenarioFileTest, MissingKeysHaveTheirDefaults) {
  const Scenario scenario = Star(R"({"kind": "flow"})");
  EXPECT_EQ(scenario.nic.mtu, 1024u);
  EXPECT_EQ(scenario.nic.congestion, verbs::soft::CongestionControl::kDcqcn);
  EXPECT_TRUE(scenario.phantom);
  ASSERT_EQ(scenario.transfers.size(), 1u);
  EXPECT_EQ(scenario.transfers[0].bytes, 1'000'000u);
  EXPECT_EQ(scenario.groups[0], "flow");
}

TEST(ScenarioFileTest, HostsCostNothingByDefault) {
  const Scenario scenario = Star(R"({"kind": "flow"})");
  ASSERT_EQ(scenario.costs.size(), 5u);
  for (const HostCosts& costs : scenario.costs) {
    EXPECT_TRUE(costs.post == base::Duration());
    EXPECT_EQ(costs.copy_bandwidth, 0u);
  }
}

TEST(ScenarioFileTest, CostsApplyToAllHostsOrToGroups) {
  const std::string star = std::string(kStar) + R"(, "workload": [{"kind": "flow"}], "costs": )";
  const auto all = Parse(star + R"("cx6-200g")");
  ASSERT_TRUE(all.ok()) << all.status();
  for (const HostCosts& costs : all->costs) EXPECT_TRUE(costs.post == base::Nanoseconds(75));

  const auto groups = Parse(star + R"([{"preset": "cx6-200g"}, {"preset": "softroce", "hosts": ["host1", "host3"]}])");
  ASSERT_TRUE(groups.ok()) << groups.status();
  std::vector<int64_t> posts;
  for (const HostCosts& costs : groups->costs) posts.push_back(costs.post.nanoseconds());
  EXPECT_EQ(posts, (std::vector<int64_t>{75, 5000, 75, 5000, 75}));
}

TEST(ScenarioFileTest, MissingCostsAreReported) {
  EXPECT_NE(WrongWith(R"("costs": "cx7")").find("costs: there are no costs 'cx7'; there are cx6-200g"),
            std::string::npos);
  EXPECT_NE(WrongWith(R"("costs": "mine.json")").find("costs: cannot read "), std::string::npos);
  EXPECT_NE(WrongWith(R"("costs": [{"preset": "cx7"}])").find("costs[0].preset: there are no costs 'cx7'"),
            std::string::npos);
  EXPECT_NE(WrongWith(R"("costs": [{"hosts": ["host1"]}])").find("costs[0].preset: "), std::string::npos);
  EXPECT_NE(WrongWith(R"("costs": [{"preset": "zero", "hosts": ["host9"]}])").find("costs[0].hosts: "),
            std::string::npos);
  EXPECT_NE(WrongWith(R"("costs": [{"preset": "zero", "host": "host1"}])").find("unknown key 'host'"),
            std::string::npos);
  EXPECT_NE(WrongWith(R"("costs": 3)").find("costs: "), std::string::npos);
}

TEST(ScenarioFileTest, EveryKeyIsRead) {
  const auto scenario = Parse(std::string(kStar) + R"(,
      "name": "n", "question": "q", "payload": "real", "seed": 18446744073709551615, "duration": "3ms",
      "freeze_after": "2ms", "outputs": {"interval": "5us", "most_samples": 10},
      "nic": {"congestion": "fixed", "window": 7, "mtu": 512, "ack_every": 3, "recovery": "selective-repeat", "dscp": 0, "ack_timeout": "1s",
              "retries": 2, "dcqcn": {"g": 0.5, "minimum_rate": "2Gb/s", "alpha_timer": "1us", "rate_timer": "2us",
              "byte_counter": "3KB", "fast_recovery": 4, "additive_increase": "5Mb/s", "hyper_increase": "6Mb/s"}},
      "workload": [{"kind": "flow", "name": "f", "verb": "read", "from": "host3", "to": "host4:0", "bytes": "4KiB",
                    "start": "8us", "count": 2}])");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->name, "n");
  EXPECT_EQ(scenario->question, "q");
  EXPECT_FALSE(scenario->phantom);
  EXPECT_EQ(scenario->seed, UINT64_MAX);
  EXPECT_EQ(scenario->duration.milliseconds(), 3);
  EXPECT_EQ(scenario->freeze_after.milliseconds(), 2);
  EXPECT_EQ(scenario->outputs.interval.microseconds(), 5);
  EXPECT_EQ(scenario->outputs.most_samples, 10u);
  EXPECT_EQ(scenario->nic.congestion, verbs::soft::CongestionControl::kFixed);
  EXPECT_EQ(scenario->nic.window, 7u);
  EXPECT_EQ(scenario->nic.mtu, 512u);
  EXPECT_EQ(scenario->nic.ack_every, 3u);
  EXPECT_TRUE(scenario->nic.selective_repeat);
  EXPECT_EQ(scenario->nic.dscp, 0u);
  EXPECT_EQ(scenario->nic.ack_timeout.milliseconds(), 1000);
  EXPECT_EQ(scenario->nic.retries, 2u);
  const verbs::soft::DcqcnParameters& dcqcn = scenario->nic.dcqcn;
  EXPECT_EQ(dcqcn.g, 0.5);
  EXPECT_EQ(dcqcn.minimum_rate, 2'000'000'000u);
  EXPECT_EQ(dcqcn.alpha_timer.microseconds(), 1);
  EXPECT_EQ(dcqcn.rate_timer.microseconds(), 2);
  EXPECT_EQ(dcqcn.byte_counter, 3000u);
  EXPECT_EQ(dcqcn.fast_recovery, 4u);
  EXPECT_EQ(dcqcn.additive_increase, 5'000'000u);
  EXPECT_EQ(dcqcn.hyper_increase, 6'000'000u);
  ASSERT_EQ(scenario->transfers.size(), 2u);
  const Transfer& second = scenario->transfers[1];
  EXPECT_EQ(second.from, 3u);
  EXPECT_EQ(second.to, 4u);
  EXPECT_EQ(second.bytes, 4096u);
  EXPECT_EQ(second.verb, verbs::Opcode::kRead);
  EXPECT_EQ(second.start.microseconds(), 8);
  EXPECT_EQ(second.after, 0u);
}

TEST(ScenarioFileTest, MistakesAreReportedWithTheirPlaceAndARemedy) {
  EXPECT_EQ(WrongWith(R"("sede": 1)"),
            "unknown key 'sede'; known are costs, duration, freeze_after, name, nic, outputs, payload, question, seed, "
            "store, topology, workload");
  EXPECT_EQ(WrongWith(R"("seed": -1)"), "seed: a whole number is needed here");
  EXPECT_EQ(WrongWith(R"("payload": "none")"), "payload: it is \"real\" or \"phantom\"");
  EXPECT_EQ(WrongWith(R"("duration": "0s")"), "duration: a time above 0 is needed here");
  EXPECT_EQ(WrongWith(R"("nic": {"mtu": 1000})"), "nic.mtu: it is 256, 512, 1024, 2048 or 4096");
  EXPECT_EQ(WrongWith(R"("nic": {"window": "big"})"), "nic.window: a whole number from 1 to 4194304 is needed here");
  EXPECT_NE(WrongWith(R"("nic": {"congestion": "tcp"})").find("dcqcn"), std::string::npos);
  EXPECT_EQ(WrongWith(R"("nic": {"recovery": "none"})"), "nic.recovery: it is \"go-back-n\" or \"selective-repeat\"");
  EXPECT_EQ(WrongWith(R"("nic": {"dcqcn": {"g": 2}})"), "nic.dcqcn.g: above 0 and at most 1");
  EXPECT_EQ(WrongWith(R"("seed": 1, "seed": 2)"), "an object has 'seed' twice");
  EXPECT_EQ(Wrong(R"("workload": [])"),
            "topology: a generator with its numbers, or the name of a topology file, is needed");
  EXPECT_EQ(Wrong(std::string(kStar) + R"(, "workload": [])"), "workload: at least one transfer is needed");
  EXPECT_EQ(Wrong(R"("topology": {"generator": "star", "host": 3})"),
            "topology: unknown key 'host'; known are generator, host_link, hosts, switch, uplink");
  EXPECT_NE(Wrong(R"("topology": "missing.json")").find("missing.json"), std::string::npos);
}

TEST(ScenarioFileTest, MistakesInWorkloadsAreReportedToo) {
  EXPECT_EQ(WrongWorkload(R"({"kind": "flow", "to": "host9"})"),
            "workload[0].to: the topology has no host 'host9'; its 5 are called host0 to host4");
  EXPECT_EQ(WrongWorkload(R"({"kind": "flow", "to": "host0"})"),
            "workload[0].to: it must be another host than \"from\"");
  EXPECT_EQ(WrongWorkload(R"({"kind": "flow", "bytes": 0})"),
            "workload[0].bytes: at least 1 and at most 1 GiB are needed here");
  EXPECT_EQ(WrongWorkload(R"({"kind": "flow", "verb": "put"})"),
            "workload[0].verb: it is \"write\", \"read\" or \"send\"");
  EXPECT_EQ(WrongWorkload(R"({"kind": "incast", "senders": 5})"),
            "workload[0].senders: a whole number from 1 to 4 is needed here");
  EXPECT_EQ(WrongWorkload(R"({"kind": "incast", "from": ["host0"]})"),
            "workload[0].from: 'host0' is the other end of these transfers");
  EXPECT_EQ(WrongWorkload(R"({"kind": "shuffle", "hosts": ["host1", "host1"]})"),
            "workload[0].hosts: 'host1' is there twice");
  EXPECT_EQ(WrongWorkload(R"({"kind": "shuffle", "partners": 5})"),
            "workload[0].partners: a whole number from 1 to 4 is needed here");
  EXPECT_NE(WrongWorkload(R"({"kind": "bursts"})").find("all-reduce-ring"), std::string::npos);
  EXPECT_NE(WrongWorkload(R"({"kind": "flow"}, {"kind": "flow"})").find("name of its own"), std::string::npos);
  EXPECT_NE(WrongWorkload(R"({"kind": "poisson", "sizes": "none.txt"})").find("cannot read"), std::string::npos);
  const std::string trace = WriteFile("wrong.csv", "# a comment\n1us,host0,host1,4KiB\n2us,host0,host0,1\n");
  EXPECT_NE(WrongWorkload(R"({"kind": "trace", "file": ")" + trace + "\"}").find("line 3"), std::string::npos);
}

TEST(ScenarioFileTest, KeysOfTheStoreAreRead) {
  const auto scenario = Parse(std::string(kStar) + R"(,
      "store": {"memory": "3MiB", "engines": 2, "policy": "eager:1KiB,write", "connections": "when-needed",
                "receive_slots": 16, "chunks_in_flight": 3},
      "workload": [{"kind": "fan-out", "through": "store", "protocol": "read", "start": "1us", "gap": "2us"}])");
  ASSERT_TRUE(scenario.ok()) << scenario.status();
  EXPECT_EQ(scenario->store.memory, 3u << 20);
  EXPECT_EQ(scenario->store.engines, 2u);
  EXPECT_EQ(scenario->store.endpoint.policy.ToString(), "eager:1KiB,write");
  EXPECT_FALSE(scenario->store.connect_before);
  EXPECT_EQ(scenario->store.endpoint.receive_slots, 16u);
  EXPECT_EQ(scenario->store.endpoint.chunks_in_flight, 3u);
  ASSERT_EQ(scenario->objects.size(), 1u);
  EXPECT_EQ(scenario->objects[0].bytes, 1'000'000u);
  ASSERT_EQ(scenario->transfers.size(), 4u);
  EXPECT_EQ(scenario->transfers[3].way, Transfer::Way::kGet);
  EXPECT_EQ(scenario->transfers[3].protocol, transport::Protocol::kRead);
  EXPECT_EQ(scenario->transfers[3].start.microseconds(), 7);
}

TEST(ScenarioFileTest, MistakesAboutTheStoreAreReportedToo) {
  const auto trace = [](const std::string& text) {
    return WrongWorkload(R"({"kind": "trace", "through": "store", "file": ")" + WriteFile("store.csv", text) + "\"}");
  };
  EXPECT_EQ(WrongWorkload(R"({"kind": "flow", "through": "walls"})"),
            "workload[0].through: it is \"network\" or \"store\"");
  EXPECT_EQ(WrongWorkload(R"({"kind": "flow", "through": "store", "protocol": "send"})"),
            "workload[0].protocol: it is \"auto\", \"eager\", \"read\" or \"write\"");
  EXPECT_NE(WrongWorkload(R"({"kind": "flow", "through": "store", "verb": "read"})").find("unknown key 'verb'"),
            std::string::npos);
  EXPECT_EQ(WrongWorkload(R"({"kind": "all-reduce-ring", "through": "store"})"),
            "workload[0].through: pieces of a ring are messages, not objects; leave it out, or take another kind");
  EXPECT_EQ(WrongWith(R"("store": {"memory": 1})"), "store.memory: at least 1 MiB and at most 1 TiB are needed here");
  EXPECT_EQ(WrongWith(R"("store": {"connections": 1})").find("store.connections:"), 0u);
  EXPECT_EQ(WrongWith(R"("store": {"policy": "eager:1KiB,fax"})").find("store.policy:"), 0u);
  EXPECT_EQ(Wrong(R"("topology": {"generator": "rail-optimised"},
                     "workload": [{"kind": "flow", "through": "store", "to": "host1:1"}])"),
            "workload[0].to: 'host1:1' is one NIC; the store takes whole hosts, as in host1");
  EXPECT_EQ(Wrong(std::string(kStar) + R"(, "store": {"memory": "2MiB"},
                     "workload": [{"kind": "shuffle", "through": "store"}])"),
            "store.memory: host0 puts 3.8 MiB, and copies need room, too: ask for more than 2 MiB");
  EXPECT_NE(trace("0us,host0,keep,a,1KiB\n").find("line 1: a line is"), std::string::npos);
  EXPECT_NE(trace("0us,host0,put,a,1KiB\n1us,host1,put,a,1KiB\n").find("line 2: 'a' is put twice"), std::string::npos);
  EXPECT_NE(trace("0us,host0,get,a,1KiB\n").find("line 1: nobody puts 'a'"), std::string::npos);
  EXPECT_NE(trace("0us,host0,get,a,1KiB\n1us,host1,put,a,2KiB\n").find("line 1: 'a' has 2048 bytes"),
            std::string::npos);
}

TEST(WorkloadTest, PatternsAskForTheTransfersOfTheirName) {
  Scenario scenario = Star(R"({"kind": "incast", "to": "host2", "senders": 3})");
  ASSERT_EQ(scenario.transfers.size(), 3u);
  for (const Transfer& one : scenario.transfers) EXPECT_EQ(one.to, 2u);
  scenario = Star(R"({"kind": "fan-out", "from": "host2"})");
  ASSERT_EQ(scenario.transfers.size(), 4u);
  for (const Transfer& one : scenario.transfers) EXPECT_EQ(one.from, 2u);
  scenario = Star(R"({"kind": "shuffle"})");
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (const Transfer& one : scenario.transfers) pairs.insert({one.from, one.to});
  EXPECT_EQ(scenario.transfers.size(), 20u);
  EXPECT_EQ(pairs.size(), 20u);
  scenario = Star(R"({"kind": "shuffle", "partners": 2})");
  ASSERT_EQ(scenario.transfers.size(), 10u);
  for (const Transfer& one : scenario.transfers) {
    const uint32_t distance = (one.to + 5 - one.from) % 5;
    EXPECT_TRUE(distance == 1 || distance == 3) << one.from << " to " << one.to;
  }
}

TEST(WorkloadTest, APermutationIsOneAndNobodySendsToItself) {
  for (const char* members : {R"("shift": 2)", R"("bytes": 1)"}) {
    const Scenario scenario = Star(std::string(R"({"kind": "permutation", )") + members + "}");
    std::set<uint32_t> from, to;
    for (const Transfer& one : scenario.transfers) {
      EXPECT_NE(one.from, one.to);
      from.insert(one.from);
      to.insert(one.to);
    }
    EXPECT_EQ(from.size(), 5u);
    EXPECT_EQ(to.size(), 5u);
  }
}

TEST(WorkloadTest, EachRoundOfARingWaitsForThePieceOfThePredecessor) {
  const Scenario scenario = Star(R"({"kind": "incast", "senders": 1}, {"kind": "all-reduce-ring", "bytes": 1001})");
  ASSERT_EQ(scenario.transfers.size(), 1u + 8 * 5);
  for (uint32_t i = 1; i < scenario.transfers.size(); ++i) {
    const Transfer& one = scenario.transfers[i];
    EXPECT_EQ(one.bytes, 201u);
    EXPECT_EQ(one.after.has_value(), i > 5);
    EXPECT_EQ(i > 5 ? scenario.transfers[*one.after].to : one.from, one.from);
  }
}

TEST(WorkloadTest, PoissonArrivalsOfferTheLoadAndComeFromTheSeed) {
  const std::string sizes = WriteFile("sizes.txt", "1000 0\n1000 50\n9000 100  # a comment\n");
  const std::string workload = R"({"kind": "poisson", "load": 0.25, "transfers": 5000, "sizes": ")" + sizes + "\"}";
  const Scenario scenario = Star(workload);
  double bytes = 0;
  for (const Transfer& one : scenario.transfers) bytes += one.bytes;
  const double offered = 8 * bytes / scenario.transfers.back().start.seconds();
  EXPECT_NEAR(offered / (5 * 100e9), 0.25, 0.02);
  EXPECT_EQ(Star(workload).transfers.back().start, scenario.transfers.back().start);
}

TEST(WorkloadTest, ATraceIsReadLineByLine) {
  const std::string trace =
      WriteFile("trace.csv", "# start,from,to,bytes\n\n1.5us, host1, host0, 4KiB\n0s,host2,host3,1\n");
  const Scenario scenario = Star(R"({"kind": "trace", "file": ")" + trace + "\"}");
  ASSERT_EQ(scenario.transfers.size(), 2u);
  EXPECT_EQ(scenario.transfers[0].start.nanoseconds(), 1500);
  EXPECT_EQ(scenario.transfers[0].from, 1u);
  EXPECT_EQ(scenario.transfers[0].bytes, 4096u);
  EXPECT_EQ(scenario.transfers[1].to, 3u);
}

TEST(SizeDistributionTest, DrawsAsTheFileSays) {
  const auto sizes = SizeDistribution::Parse("100 0\n100 50\n300 100\n");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_DOUBLE_EQ(sizes->Mean(), 150);
  base::Random random(7);
  double sum = 0;
  uint32_t smallest = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint32_t size = sizes->Draw(&random);
    EXPECT_LE(size, 300u);
    sum += size;
    smallest += size == 100 ? 1 : 0;
  }
  EXPECT_NEAR(sum / 20'000, 150, 2);
  EXPECT_NEAR(smallest / 20'000.0, 0.5, 0.02);
}

TEST(SizeDistributionTest, RefusesMalformedDistributions) {
  EXPECT_FALSE(SizeDistribution::Parse("").ok());
  EXPECT_FALSE(SizeDistribution::Parse("100 50\n").ok());
  EXPECT_FALSE(SizeDistribution::Parse("100 0\n50 100\n").ok());
  EXPECT_FALSE(SizeDistribution::Parse("100 0\nx 100\n").ok());
}

TEST(SetMemberTest, ChangesAddsAndRefuses) {
  json value = *ParseJson(R"({"nic": {"mtu": 1024}, "workload": [{"bytes": 5}]})");
  EXPECT_TRUE(SetMember("nic.mtu=4096", &value).ok());
  EXPECT_TRUE(SetMember("nic.congestion=fixed", &value).ok());
  EXPECT_TRUE(SetMember("workload.0.bytes=1MB", &value).ok());
  EXPECT_TRUE(SetMember("topology.switch.pfc.lossless=[]", &value).ok());
  EXPECT_EQ(value["nic"]["mtu"], 4096);
  EXPECT_EQ(value["nic"]["congestion"], "fixed");
  EXPECT_EQ(value["workload"][0]["bytes"], "1MB");
  EXPECT_TRUE(value["topology"]["switch"]["pfc"]["lossless"].is_array());
  EXPECT_FALSE(SetMember("nic.mtu", &value).ok());
  EXPECT_FALSE(SetMember("workload.first.bytes=1", &value).ok());
}

// The examples of docs/simulation.md.
TEST(ScenarioFileTest, TheExamplesOfTheDocumentAreRight) {
  std::ifstream file("docs/simulation.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string document = text.str();
  const std::string begin = "```json\n";
  int examples = 0;
  const size_t scenarios = document.find("\n## Scenarios\n");
  ASSERT_NE(scenarios, std::string::npos);
  for (size_t at = document.find(begin, scenarios); at != std::string::npos; at = document.find(begin, at)) {
    at += begin.size();
    const absl::StatusOr<json> value = ParseJson(document.substr(at, document.find("```", at) - at));
    ASSERT_TRUE(value.ok()) << value.status();
    const auto scenario = ScenarioFromJson(*value, testing::TempDir());
    EXPECT_TRUE(scenario.ok()) << scenario.status();
    ++examples;
  }
  EXPECT_EQ(examples, 1);
}

}  // namespace
}  // namespace tokamak::sim

// Whole runs in virtual time: every rank is a host of a simulated cluster.
#include "tests/bench/cluster/driver.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "sim/cluster/cluster.h"
#include "tests/bench/cluster/report.h"
#include "tests/bench/cluster/virtual/virtual_collective.h"

namespace tokamak::bench {
namespace {

using Results = absl::StatusOr<std::vector<CaseResult>>;
using transport::Protocol;

const std::vector<Pattern> kAllPatterns = {Pattern::kOneToOne, Pattern::kOneToMany, Pattern::kManyToOne,
                                           Pattern::kAllToAll};
const std::vector<Contender> kContenders = {
    {"eager", "arena"}, {"read", "arena"}, {"write", "arena"}, {"policy", "arena"}};
const std::vector<Protocol> kProtocols = {Protocol::kEager, Protocol::kRead, Protocol::kWrite, Protocol::kAuto};

// Damages one byte of what it brings, or does not bring it.
class BadPuller final : public Puller {
 public:
  BadPuller(node::Node& node, uint64_t damaged_byte) : good_(node, Protocol::kRead), node_(node), at_(damaged_byte) {}

  base::Pending Pull(uint32_t from, const base::ObjectId& id, store::Owner who, base::Duration timeout,
                     Callback done) override {
    return good_.Pull(from, id, who, timeout, [this, id, done = std::move(done)](const absl::Status& status) {
      const absl::Span<uint8_t> bytes = node_.store().Memory(*node_.store().Find(id));
      if (at_ >= bytes.size()) return done(absl::UnavailableError("lost on the way"));
      bytes[at_] ^= 1;
      done(status);
    });
  }

 private:
  NodePuller good_;
  node::Node& node_;
  const uint64_t at_;
};

// Brings its first object. For later ones it leaves the old bytes in memory: perhaps those of the
// first.
class IdlePuller final : public Puller {
 public:
  IdlePuller(node::Node& node, uint64_t size) : good_(node, Protocol::kRead), node_(node), size_(size) {}

  base::Pending Pull(uint32_t from, const base::ObjectId& id, store::Owner who, base::Duration timeout,
                     Callback done) override {
    const bool first = ++pulls_ == 1;
    const base::ObjectId look = base::ObjectId::FromName("look");
    const absl::Span<const uint8_t> room = node_.store().Memory(*node_.store().Create(look, size_, 0, who));
    const std::vector<uint8_t> before(room.begin(), room.end());
    EXPECT_TRUE(node_.store().Abort(look, who).ok());
    return good_.Pull(from, id, who, timeout, [=, done = std::move(done)](const absl::Status& status) {
      const absl::Span<uint8_t> bytes = node_.store().Memory(*node_.store().Find(id));
      if (!first) std::copy(before.begin(), before.end(), bytes.begin());
      done(status);
    });
  }

 private:
  NodePuller good_;
  node::Node& node_;
  const uint64_t size_;
  int pulls_ = 0;
};

// A cluster, and a driver for each of its hosts.
class Ranks final {
 public:
  explicit Ranks(uint32_t ranks, uint64_t seed = 1) : cluster(Options(seed)), hub_(ranks) {
    sim::HostOptions host;
    host.memory = 32 << 20;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      cluster.Add(host);
      collectives_.push_back(std::make_unique<VirtualCollective>(hub_, rank, cluster[rank].loop));
      pullers_.emplace_back();
      for (const Protocol protocol : kProtocols) {
        pullers_.back().push_back(std::make_unique<NodePuller>(cluster[rank].node(), protocol));
      }
    }
    cluster.Settle();
    answers.resize(ranks, absl::UnknownError("not answered"));
  }
  ~Ranks() {
    drivers_.clear();
    pullers_.clear();
    collectives_.clear();
  }

  void Replace(uint32_t rank, size_t contender, std::unique_ptr<Puller> puller) {
    pullers_[rank][contender] = std::move(puller);
  }

  // All ranks but the first `silent`, until each is done.
  void Run(const Plan& plan, uint32_t silent = 0) {
    uint32_t answered = silent;
    for (uint32_t rank = silent; rank < hub_.ranks(); ++rank) {
      std::vector<Puller*> pullers;
      for (size_t i = 0; i < plan.contenders.size(); ++i) pullers.push_back(pullers_[rank][i].get());
      drivers_.push_back(std::make_unique<Driver>(cluster[rank].loop, *collectives_[rank], cluster[rank].node(),
                                                  std::move(pullers), plan, [this](const CaseResult&) { ++told; }));
      drivers_.back()->Run([this, rank, &answered](const Results& results) {
        answers[rank] = results;
        ++answered;
      });
    }
    EXPECT_TRUE(cluster.RunUntil([&] { return answered == hub_.ranks(); }, base::Seconds(4000)));
  }
  uint64_t created(uint32_t rank) { return cluster[rank].store().statistics().created; }
  bool lost_others(size_t driver) const { return drivers_[driver]->lost_others(); }

  std::string Csv(uint32_t rank = 0) const {
    if (!answers[rank].ok()) return answers[rank].status().ToString();
    return Report({hub_.ranks(), 1, "m", "k", "c"}, kContenders, *answers[rank]).Csv();
  }

  sim::Cluster cluster;
  std::vector<Results> answers;  // by rank
  int told = 0;

 private:
  static sim::ClusterOptions Options(uint64_t seed) {
    sim::ClusterOptions options;
    options.seed = seed;
    return options;
  }

  VirtualHub hub_;
  std::vector<std::unique_ptr<VirtualCollective>> collectives_;
  std::vector<std::vector<std::unique_ptr<Puller>>> pullers_;
  std::vector<std::unique_ptr<Driver>> drivers_;
};

Plan MakePlan(const std::vector<Pattern>& patterns, const std::vector<uint64_t>& sizes, size_t contenders,
              uint64_t seed = 1) {
  Plan plan;
  plan.contenders.assign(kContenders.begin(), kContenders.begin() + static_cast<ptrdiff_t>(contenders));
  plan.seed = seed;
  plan.cases = ShuffledCases(patterns, sizes, contenders, base::Random(seed));
  plan.warm_up = 1;
  plan.stop.least = 6;
  plan.stop.most = 8;
  return plan;
}

TEST(DriverTest, EveryPatternMovesExactlyItsObjects) {
  constexpr uint32_t kRanks = 3;
  Ranks ranks(kRanks);
  const std::vector<uint64_t> sizes = {1, 5000, 40'000};
  const Plan plan = MakePlan(kAllPatterns, sizes, kContenders.size());
  ranks.Run(plan);
  const Results& results = ranks.answers[0];
  ASSERT_TRUE(results.ok()) << results.status();
  ASSERT_EQ(results->size(), kAllPatterns.size() * sizes.size() * kContenders.size());
  EXPECT_EQ(ranks.told, static_cast<int>(kRanks * results->size()));

  std::vector<uint64_t> expected(kRanks);  // objects by rank
  std::set<std::string> cases;
  for (const CaseResult& result : *results) {
    const std::vector<Edge> edges = EdgesOf(result.what.pattern, kRanks);
    EXPECT_EQ(result.bytes, edges.size() * result.what.size);
    EXPECT_GE(result.repetitions, 6u);
    EXPECT_LE(result.repetitions, 8u);
    EXPECT_GT(result.p10, 0);
    EXPECT_LE(result.p10, result.p50);
    EXPECT_LE(result.p50, result.p90);
    EXPECT_DOUBLE_EQ(result.bytes_per_second, static_cast<double>(result.bytes) / result.p50);
    EXPECT_LE(result.least_share, result.mean_share);
    const bool one_source = result.what.pattern == Pattern::kOneToOne || result.what.pattern == Pattern::kOneToMany;
    EXPECT_GT(result.least_source, one_source ? 0.999 : 0);
    EXPECT_LE(result.least_source, 1);
    for (const Edge& edge : edges) {
      expected[edge.from] += plan.warm_up + result.repetitions;
      expected[edge.to] += plan.warm_up + result.repetitions;
    }
    cases.insert(Report::Line(result, kContenders[result.what.contender]));
  }
  EXPECT_EQ(cases.size(), results->size());
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.created(rank), expected[rank]) << "what it gave, and a copy of all it got";
    EXPECT_EQ(ranks.Csv(rank), ranks.Csv(0)) << "all ranks have the same results";
    EXPECT_EQ(ranks.cluster[rank].store().statistics().sealed_objects, 0u) << "everything was deleted";
  }
  ranks.cluster.ExpectClean();
}

TEST(DriverTest, TheNamedProtocolMovesTheBytes) {
  Ranks ranks(2);
  Plan plan = MakePlan({Pattern::kOneToOne}, {200'000}, 3);
  plan.stop.most = 6;
  ranks.Run(plan);
  ASSERT_TRUE(ranks.answers[0].ok()) << ranks.answers[0].status();
  for (const Protocol protocol : {Protocol::kEager, Protocol::kRead, Protocol::kWrite}) {
    EXPECT_EQ(ranks.cluster[1].transfers_pulled(protocol), 7u);
    EXPECT_EQ(ranks.cluster[0].transfers_pulled(protocol), 0u);
  }
}

TEST(DriverTest, KeptObjectsAreMovedAgainAndAgain) {
  Ranks ranks(3);
  Plan plan = MakePlan({Pattern::kAllToAll}, {64, 40'000}, kContenders.size());
  plan.keep = true;
  plan.stop.least = plan.stop.most = 6;
  ranks.Run(plan);
  ASSERT_TRUE(ranks.answers[0].ok()) << ranks.answers[0].status();
  for (uint32_t rank = 0; rank < 3; ++rank) {
    // For each case what it gives, a copy of each of two at each repetition, and the soil between.
    EXPECT_EQ(ranks.created(rank), plan.cases.size() * (2 + 2 * 7 + 2 * 6));
    EXPECT_EQ(ranks.cluster[rank].store().statistics().sealed_objects, 0u);
  }
  ranks.cluster.ExpectClean();
}

TEST(DriverTest, OneSeedGivesTheSameResultsToTheLastDigit) {
  const std::vector<uint64_t> sizes = {64, 9000};
  const auto run = [&](uint64_t seed) {
    Ranks ranks(3, seed);
    ranks.Run(MakePlan({Pattern::kAllToAll}, sizes, 3, seed));
    return ranks.Csv();
  };
  const std::string first = run(5);
  EXPECT_TRUE(absl::StartsWith(first, "pattern,")) << first;
  EXPECT_EQ(run(5), first);
}

// 80 ps for each byte, and 2 us each way: what the links of the cluster are.
TEST(DriverTest, TheSpeedOfTheLinksIsFound) {
  constexpr uint64_t kSize = 1 << 20;
  Ranks ranks(3);
  Plan plan = MakePlan({Pattern::kOneToOne, Pattern::kOneToMany, Pattern::kManyToOne}, {kSize}, 2);
  plan.stop.most = 6;
  ranks.Run(plan);
  ASSERT_TRUE(ranks.answers[0].ok()) << ranks.answers[0].status();
  const double on_the_wire = static_cast<double>(kSize) * 80e-12;
  for (const CaseResult& result : *ranks.answers[0]) {
    if (kContenders[result.what.contender].protocol != "read") continue;
    const std::string name = Report::Line(result, kContenders[result.what.contender]);
    // Each pair of hosts has a link of its own, so the pattern makes no difference but in sums.
    EXPECT_GT(result.p50, on_the_wire) << name;
    EXPECT_LT(result.p50, on_the_wire * 1.3) << name;
    const double links = result.what.pattern == Pattern::kManyToOne ? 2 : 1;  // into one rank
    EXPECT_LT(result.mean_share, links / 80e-12) << name;
    EXPECT_GT(result.mean_share, links / 80e-12 / 1.3) << name;
    EXPECT_GT(result.least_source, 0.9) << name << ": all sources have a link of their own";
  }
}

TEST(DriverTest, AWrongByteEndsTheRunOnAllRanks) {
  for (const uint64_t at : {uint64_t{0}, uint64_t{299'999}}) {
    Ranks ranks(3);
    ranks.Replace(1, 0, std::make_unique<BadPuller>(ranks.cluster[1].node(), at));
    ranks.Run(MakePlan({Pattern::kOneToMany}, {300'000}, 1));
    for (const Results& answer : ranks.answers) {
      EXPECT_EQ(answer.status().code(), absl::StatusCode::kDataLoss) << answer.status();
      EXPECT_EQ(answer.status().message(),
                "rank 1: one-to-many 293 KiB eager arena: the bytes that came from rank 0 are wrong");
    }
  }
}

TEST(DriverTest, ATransferThatWritesNothingIsFound) {
  constexpr uint64_t kSize = 300'000;
  Ranks ranks(2);
  ranks.Replace(1, 0, std::make_unique<IdlePuller>(ranks.cluster[1].node(), kSize));
  Plan plan = MakePlan({Pattern::kOneToOne}, {kSize}, 1);
  plan.keep = true;
  ranks.Run(plan);
  EXPECT_EQ(ranks.answers[0].status().code(), absl::StatusCode::kDataLoss) << ranks.answers[0].status();
}

TEST(DriverTest, AnObjectThatDoesNotComeEndsTheRunOnAllRanks) {
  Ranks ranks(3);
  ranks.Replace(2, 1, std::make_unique<BadPuller>(ranks.cluster[2].node(), UINT64_MAX));
  ranks.Run(MakePlan({Pattern::kAllToAll}, {64}, 2));
  for (const Results& answer : ranks.answers) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable) << answer.status();
    EXPECT_EQ(answer.status().message(), "rank 2: all-to-all 64 B read arena: lost on the way");
  }
}

TEST(DriverTest, AnObjectThatHasNoRoomEndsTheRunOnAllRanks) {
  Ranks ranks(2);
  ranks.Run(MakePlan({Pattern::kOneToOne}, {64 << 20}, 1));  // the stores have 32 MiB
  for (const Results& answer : ranks.answers) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kResourceExhausted) << answer.status();
    EXPECT_TRUE(absl::StartsWith(answer.status().message(), "rank 0: one-to-one 64 MiB eager arena: "))
        << answer.status();
  }
}

TEST(DriverTest, ALostRankIsNotAwaitedForEver) {
  Ranks ranks(3);
  const base::Time began = ranks.cluster.time.Now();
  ranks.Run(MakePlan({Pattern::kAllToAll}, {64}, 1), /*silent=*/1);
  for (size_t rank = 1; rank < 3; ++rank) {
    EXPECT_EQ(ranks.answers[rank].status().code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(ranks.lost_others(rank - 1));
  }
  EXPECT_LE(ranks.cluster.time.Now() - began, base::Seconds(60) + Driver::kPatience + base::Seconds(1));
}

}  // namespace
}  // namespace tokamak::bench

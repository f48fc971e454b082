// Lives of a small cluster, drawn from a seed: programs put, get, drop and delete while the network loses packets, is cut, and
// nodes crash or stand still for longer than their leases. While that lasts nothing may be wrong; when it is over, everything
// must finish.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;

constexpr size_t kMachines = 3;
constexpr uint64_t kObjects = 30;
constexpr int kSteps = 400;
constexpr base::Duration kShortLease = Milliseconds(500);

// What happens to the nodes, beside what happens to the network.
enum class Fate { kNothing, kCrashes, kFreezes };

class Life {
 public:
  Life(uint64_t seed, Fate fate) : fate_(fate), random_(seed), cluster_(Options(seed, fate)) {
    MachineOptions machine;
    machine.memory = 1 << 20;
    machine.cache = true;
    for (size_t i = 0; i < kMachines; ++i) cluster_.Add(machine);
    gets_.resize(kMachines);
    cluster_.RunFor(Milliseconds(50));
  }

  void Run() {
    for (int step = 0; step < kSteps; ++step) {
      Act();
      if (random_.Chance(0.05)) Trouble();
      cluster_.RunFor(base::Microseconds(static_cast<int64_t>(random_.Below(20'000))));
    }
    Heal();
    EndGets();
    ExpectTheDirectoryIsRight();
    ExpectAllIsFound();
    cluster_.ExpectClean();
  }

  uint64_t trace_hash() const { return cluster_.trace.hash(); }
  uint64_t pulled() { return pulled_ + Sum(); }
  // Renewals that nobody answered, where nobody crashed.
  uint64_t renewals_failed() {
    uint64_t sum = 0;
    for (size_t i = 0; i < kMachines; ++i) sum += cluster_[i].node->membership().counters().failed_renewals;
    return sum;
  }

 private:
  static ClusterOptions Options(uint64_t seed, Fate fate) {
    ClusterOptions options;
    options.seed = seed;
    if (fate == Fate::kFreezes) {  // a life has many leases
      options.membership.lease = kShortLease;
      options.membership.renew = kShortLease * 3 / 10;
      options.membership.directory_deadline = kShortLease / 5;
      options.membership.retry = kShortLease / 50;
    }
    options.link.loss = 0.002;
    options.link.duplicate = 0.002;
    options.link.reorder = 0.005;
    options.link.corrupt = 0.001;
    return options;
  }

  // An id names one immutable object: its size follows from it.
  std::string Name(uint64_t number) const { return absl::StrCat("object", number); }
  static uint64_t SizeOf(uint64_t number) { return number * number * 250 % 200'000; }
  Machine& Any() { return cluster_[random_.Below(kMachines)]; }

  void Act() {
    const uint64_t number = random_.Below(kObjects);
    Machine& machine = Any();
    switch (random_.Below(10)) {
      case 0:
      case 1:
      case 2:
        (void)machine.Put(Name(number), SizeOf(number), number % 3);
        return;
      case 3:
        machine.node->Delete(base::ObjectId::FromName(Name(number)), [](const absl::StatusOr<DeleteResult>&) {});
        return;
      case 4:
        return DropOneGet(machine.index);
      case 5:
      case 6:
        return EndSomeGets(machine.index);
      default:
        return StartGet(machine);
    }
  }

  void StartGet(Machine& machine) {
    GetOptions options;
    options.timeout = Milliseconds(static_cast<int64_t>(random_.Below(3000)));
    options.protocol = static_cast<transport::Protocol>(random_.Below(4));
    std::vector<std::string> names;
    for (uint64_t i = random_.Below(4); i < 4; ++i) names.push_back(Name(random_.Below(kObjects)));
    gets_[machine.index].push_back(machine.StartGet(names, options));
  }

  void DropOneGet(size_t machine) {
    auto& gets = gets_[machine];
    if (gets.empty()) return;
    const size_t i = random_.Below(gets.size());
    gets[i]->handle.reset();
    cluster_[machine].Release(*gets[i]);
    gets.erase(gets.begin() + static_cast<ptrdiff_t>(i));
  }

  void EndSomeGets(size_t machine) {
    auto& gets = gets_[machine];
    for (auto& got : gets) {
      if (!got->done) continue;
      cluster_[machine].Release(*got);
      got.reset();
    }
    gets.erase(std::remove(gets.begin(), gets.end(), nullptr), gets.end());
  }

  void Trouble() {
    const uint64_t kind = random_.Below(fate_ == Fate::kNothing ? 2 : 4);
    if (kind == 0) return cluster_.fabric.Heal();
    if (fate_ == Fate::kFreezes) return kind == 1 ? CutOneWay() : Freeze();
    if (kind == 1) return cluster_.fabric.Partition({Any().address});
    const size_t machine = random_.Below(kMachines);
    pulled_ += cluster_[machine].node->pulls().counters().pulled;
    gets_[machine].clear();  // the programs die too
    cluster_.Crash(machine);
    cluster_.Restart(machine);
  }

  void CutOneWay() {
    const Machine& from = Any();
    const Machine& to = Any();
    if (&from != &to) cluster_.fabric.Cut(from.address, to.address);
  }

  // Any part of it, for up to three leases.
  void Freeze() {
    const auto for_some_time = [this] {
      return base::Microseconds(static_cast<int64_t>(random_.Below(3 * kShortLease.microseconds())));
    };
    Machine::Freezes freezes;
    if (random_.Chance(0.5)) freezes.control = for_some_time();
    if (random_.Chance(0.5)) freezes.engines = for_some_time();
    if (random_.Chance(0.5)) freezes.device = for_some_time();
    Any().Freeze(freezes);
  }

  void Heal() {
    cluster_.fabric.Heal();
    cluster_.fabric.SetAllLinks(ClusterOptions().link);
  }

  void EndGets() {
    for (size_t i = 0; i < kMachines; ++i) {
      for (const auto& got : gets_[i]) cluster_.Await(got);
      EndSomeGets(i);
      EXPECT_TRUE(gets_[i].empty());
    }
    cluster_.RunFor(Seconds(30));
    cluster_.Settle();
  }

  void ExpectTheDirectoryIsRight() {
    for (uint64_t number = 0; number < kObjects; ++number) {
      std::vector<directory::NodeId> held, named;
      for (size_t i = 0; i < kMachines; ++i) {
        if (cluster_[i].Has(Name(number))) held.push_back(cluster_[i].name);
      }
      bool answered = false;
      cluster_[0].served->Locate(base::ObjectId::FromName(Name(number)), {}, Seconds(1), [&](const auto& info) {
        answered = true;
        if (info.ok()) named = info->holders;
      });
      cluster_.RunUntil([&] { return answered; });
      std::sort(named.begin(), named.end());
      EXPECT_EQ(named, held) << Name(number);
    }
  }

  void ExpectAllIsFound() {
    for (uint64_t number = 0; number < kObjects; ++number) {
      for (size_t i = 0; i < kMachines; ++i) {
        bool anywhere = false;
        for (size_t j = 0; j < kMachines; ++j) anywhere |= cluster_[j].Has(Name(number));
        if (!anywhere) continue;
        EXPECT_EQ(cluster_.Get(cluster_[i], Name(number)), absl::OkStatus()) << Name(number) << " on " << i;
        cluster_.Settle();
      }
    }
  }

  uint64_t Sum() {
    uint64_t sum = 0;
    for (size_t i = 0; i < kMachines; ++i) sum += cluster_[i].node->pulls().counters().pulled;
    return sum;
  }

  const Fate fate_;
  base::Random random_;
  Cluster cluster_;
  std::vector<std::vector<std::shared_ptr<Got>>> gets_;  // by machine
  uint64_t pulled_ = 0;
};

class LifeTest : public testing::TestWithParam<uint64_t> {};

TEST_P(LifeTest, EndsWell) {
  Life life(GetParam(), Fate::kNothing);
  life.Run();
  EXPECT_GT(life.pulled(), 20u);
}

TEST_P(LifeTest, EndsWellAlsoWithCrashes) {
  Life life(GetParam(), Fate::kCrashes);
  life.Run();
}

TEST_P(LifeTest, EndsWellAlsoWithFreezes) {
  Life life(GetParam(), Fate::kFreezes);
  life.Run();
  EXPECT_GT(life.renewals_failed(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LifeTest, testing::Range(uint64_t{1}, uint64_t{9}));

TEST(LifeRepeatTest, TheSameSeedIsTheSameLife) {
  uint64_t hashes[2];
  for (uint64_t& hash : hashes) {
    Life life(99, Fate::kCrashes);
    life.Run();
    hash = life.trace_hash();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace tokamak::node

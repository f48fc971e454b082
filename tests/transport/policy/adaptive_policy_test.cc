// A policy that learns: what it chooses, what that costs, and how it forgets. Peers are formulas
// here.
#include "lib/transport/policy/adaptive_policy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::transport {
namespace {

using Times = std::function<double(Protocol protocol, double size)>;  // seconds

constexpr AdaptivePolicy::Ip kPeer = {1};

Times TwoLines(double eager_start, double eager_byte, double read_start, double read_byte) {
  return [=](Protocol protocol, double size) {
    if (protocol == Protocol::kEager) return eager_start + size * eager_byte;
    if (protocol == Protocol::kRead) return read_start + size * read_byte;
    return 1.5 * (read_start + size * read_byte);  // write: never the best
  };
}

// A link on which pulls take what a formula says, with noise.
class Link {
 public:
  explicit Link(Times times, double noise = 0, uint64_t seed = 1)
      : times_(std::move(times)),
        noise_(noise),
        random_(seed),
        policy_(*Policy::Parse("eager:128KiB,read"), random_.Fork(1)) {}

  // Forgets the times of earlier pulls with the old link.
  void Change(Times times) { times_ = std::move(times); }

  AdaptivePolicy::Choice Pull(uint64_t size, const AdaptivePolicy::Ip& peer = kPeer) {
    const AdaptivePolicy::Choice choice = policy_.Choose(peer, size, now_);
    const double tail = random_.Chance(0.02) ? 10 : 1;
    const double spread = 1 + noise_ * (random_.Fraction() + random_.Fraction() - 1);
    const double seconds = times_(choice.protocol, static_cast<double>(size)) * (noise_ > 0 ? spread * tail : 1);
    const auto took = base::Duration::Picoseconds(static_cast<int64_t>(seconds * 1e12));
    now_ = now_ + took;
    all_ = all_ + took;
    ++pulls_;
    if (choice.explores) {
      ++explored_;
      explored_time_ = explored_time_ + took;
      longest_ = std::max(longest_, took);
    }
    if (policy_.Ended(peer, size, choice, {true, took, true}, now_)) ++changes_;
    return choice;
  }

  // Sizes evenly on a logarithmic scale.
  void Pulls(int count, double least, double most) {
    for (int i = 0; i < count; ++i) {
      Pull(static_cast<uint64_t>(least * std::pow(most / least, random_.Fraction())));
      ExpectLaws();
    }
  }

  void ExpectLaws() const {
    ASSERT_LE(explored_ * kPullsForOne, pulls_);
    ASSERT_TRUE((explored_time_ - longest_) * kTimeForOne <= all_)
        << explored_time_.seconds() << " of " << all_.seconds();
  }

  // The least size at which pulls do not go eagerly, in steps of 2 %.
  double Threshold(double least, double most) {
    for (double size = least; size < most; size *= 1.02) {
      AdaptivePolicy::Choice choice;
      do {
        choice = Pull(static_cast<uint64_t>(size));
      } while (choice.explores);
      if (choice.protocol != Protocol::kEager) return size;
    }
    return most;
  }

  void Wait(base::Duration duration) { now_ = now_ + duration; }
  AdaptivePolicy& policy() { return policy_; }
  int64_t explored() const { return explored_; }
  int changes() const { return changes_; }

 private:
  Times times_;
  const double noise_;
  base::Random random_;
  AdaptivePolicy policy_;
  base::Time now_;
  base::Duration all_, explored_time_, longest_;
  int64_t pulls_ = 0, explored_ = 0;
  int changes_ = 0;
};

TEST(AdaptivePolicyTest, BeginsWithTheTable) {
  AdaptivePolicy policy(*Policy::Parse("eager:1000,write"), base::Random(1));
  EXPECT_EQ(policy.Choose(kPeer, 1000, {}).protocol, Protocol::kEager);
  EXPECT_EQ(policy.Choose(kPeer, 1001, {}).protocol, Protocol::kWrite);
  EXPECT_EQ(policy.Choose(kPeer, UINT64_MAX, {}).protocol, Protocol::kWrite);
}

// Eager costs 5 us and 1 ns for a byte, read 15 us and half of that: 20,000 bytes.
TEST(AdaptivePolicyTest, FindsAThresholdBetweenItsClasses) {
  Link link(TwoLines(5e-6, 1e-9, 15e-6, 0.5e-9));
  link.Pulls(40'000, 1000, 1e6);
  EXPECT_NEAR(link.Threshold(2000, 200'000), 20'000, 2000);
  EXPECT_GT(link.explored(), 100);
}

TEST(AdaptivePolicyTest, FindsItAgainWhereTheLinkHasChanged) {
  Link link(TwoLines(5e-6, 1e-9, 15e-6, 0.5e-9));
  link.Pulls(40'000, 1000, 1e6);
  link.Change(TwoLines(10e-6, 2e-9, 110e-6, 0.75e-9));
  link.Pulls(40'000, 1000, 1e6);
  EXPECT_NEAR(link.Threshold(2000, 800'000), 80'000, 8000);
  EXPECT_GT(link.changes(), 0) << "all take about twice as long";
}

// While the chosen protocol takes as long as before, nothing surprises, and the old means fade.
TEST(AdaptivePolicyTest, LearnsThatWhatItDoesNotUseHasBecomeBetter) {
  Link link(TwoLines(5e-6, 1e-9, 15e-6, 0.5e-9));
  link.Pulls(40'000, 1000, 1e6);
  link.Change(TwoLines(5e-6, 0.6e-9, 15e-6, 0.5e-9));
  link.Pulls(100'000, 1000, 1e6);
  EXPECT_NEAR(link.Threshold(2000, 800'000), 100'000, 10'000);
  EXPECT_EQ(link.changes(), 0);
}

TEST(AdaptivePolicyTest, NoiseMovesTheThresholdLittle) {
  std::vector<double> thresholds;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Link link(TwoLines(5e-6, 2e-9, 25e-6, 0.5e-9), /*noise=*/0.3, seed);
    link.Pulls(50'000, 1000, 1e6);
    thresholds.push_back(link.Threshold(2000, 200'000));
  }
  std::sort(thresholds.begin(), thresholds.end());
  EXPECT_NEAR(thresholds[thresholds.size() / 2], 13'333, 2700);
  EXPECT_GT(thresholds.front(), 13'333 / 2.0);
  EXPECT_LT(thresholds.back(), 13'333 * 2.0);
}

// The laws are looked at after each pull.
TEST(AdaptivePolicyTest, ExplorationStaysWithinItsBudgetEvenWhereItIsSlow) {
  Link link([](Protocol protocol, double) { return protocol == Protocol::kEager ? 1e-6 : 1e-3; });
  link.Pulls(100'000, 1000, 1e5);
  EXPECT_GT(link.explored(), 0);
}

TEST(AdaptivePolicyTest, ALongQuietTimeSavesNothingUpBeyondItsBound) {
  Link link(TwoLines(5e-6, 1e-9, 15e-6, 0.5e-9));
  for (int i = 0; i < 100'000; ++i) link.Pull(100);
  const int64_t before = link.explored();
  int burst = 0;
  for (int i = 0; i < 40; ++i) burst += link.Pull(20'000).explores ? 1 : 0;
  EXPECT_LE(burst, kMaxSavedExplorations);
  EXPECT_GT(before, 0);
}

TEST(AdaptivePolicyTest, PeersAreLearnedApart) {
  Link link(TwoLines(5e-6, 1e-9, 500e-6, 0.5e-9));
  for (int i = 0; i < 20'000; ++i) link.Pull(20'000);
  link.Change(TwoLines(500e-6, 1e-9, 5e-6, 0.5e-9));
  for (int i = 0; i < 20'000; ++i) link.Pull(20'000, {2});
  const auto chosen = [&](const AdaptivePolicy::Ip& peer) {
    AdaptivePolicy::Choice choice;
    do {
      choice = link.policy().Choose(peer, 20'000, base::Time());
    } while (choice.explores);
    return choice.protocol;
  };
  EXPECT_EQ(chosen(kPeer), Protocol::kEager);
  EXPECT_NE(chosen({2}), Protocol::kEager);
}

TEST(AdaptivePolicyTest, ThePeerUsedLongestAgoIsForgotten) {
  AdaptivePolicy policy(Policy(), base::Random(1));
  base::Time now;
  const auto peer = [](size_t i) {
    AdaptivePolicy::Ip ip{};
    ip[0] = static_cast<uint8_t>(i);
    ip[1] = static_cast<uint8_t>(i >> 8);
    return ip;
  };
  for (size_t i = 0; i < kMaxLearnedPeers + 10; ++i) {
    now = now + base::Microseconds(1);
    policy.Choose(peer(i), 1000, now);
    policy.Choose(peer(0), 1000, now);
  }
  EXPECT_EQ(policy.peers(), kMaxLearnedPeers);
  EXPECT_FALSE(policy.Ended(peer(1), 1000, {Protocol::kEager, false, {}}, {true, base::Microseconds(5), true}, now));
  EXPECT_EQ(policy.peers(), kMaxLearnedPeers) << "what ends is not remembered for it";
}

// One that failed, or waited for a connection, teaches nothing; that it is over is known.
TEST(AdaptivePolicyTest, AnUntypicalPullTeachesNothing) {
  AdaptivePolicy policy(*Policy::Parse("eager"), base::Random(1));
  for (int i = 0; i < 10'000; ++i) {
    const AdaptivePolicy::Choice choice = policy.Choose(kPeer, 1000, {});
    EXPECT_EQ(choice.protocol, Protocol::kEager);
    EXPECT_FALSE(choice.explores) << "nothing is known that it could be compared with";
    policy.Ended(kPeer, 1000, choice, {i % 2 == 0, base::Microseconds(5), i % 2 == 1}, {});
  }
}

TEST(AdaptivePolicyTest, TheSameSeedChoosesTheSame) {
  std::vector<Protocol> chosen[2];
  for (auto& run : chosen) {
    Link link(TwoLines(5e-6, 1e-9, 15e-6, 0.5e-9), 0.3, 7);
    for (int i = 0; i < 5000; ++i) run.push_back(link.Pull(1000 + static_cast<uint64_t>(i) * 17).protocol);
  }
  EXPECT_EQ(chosen[0], chosen[1]);
}

}  // namespace
}  // namespace tokamak::transport

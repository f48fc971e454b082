// Two connection state machines and a bad network between them: whatever is lost, repeated or
// reordered, both sides must end agreed. The first messages are lost in every possible combination;
// beyond that, seeds decide.
#include <bitset>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "tests/verbs/soft/cm/connection_world.h"

namespace tokamak::verbs::soft {
namespace {

using base::Duration;
using base::Milliseconds;
using base::Seconds;

struct NamedScript {
  const char* name;
  Script script;
  bool stays_up;  // where the network lets it
};

std::vector<NamedScript> Scripts() {
  using Answer = Script::Answer;
  std::vector<NamedScript> scripts;
  Script script;
  scripts.push_back({"connect", script, true});
  script.active_sends_data = true;
  scripts.push_back({"connect and send", script, true});
  script = {};
  script.answer_after = Milliseconds(700);
  scripts.push_back({"slow answer", script, true});
  script = {};
  script.answer = Answer::kReject;
  scripts.push_back({"reject", script, false});
  script.answer_after = Milliseconds(700);
  scripts.push_back({"slow reject", script, false});
  script = {};
  script.answer = Answer::kNone;
  scripts.push_back({"no answer", script, false});
  for (const int ms : {0, 1, 3, 4, 5, 150, 1000, 5003}) {
    script = {};
    script.active_drops_after = Milliseconds(ms);
    scripts.push_back({"active drops", script, false});
    script = {};
    script.passive_drops_after = Milliseconds(ms);
    scripts.push_back({"passive drops", script, false});
    script.active_drops_after = Milliseconds(ms + 3);
    scripts.push_back({"both drop", script, false});
    script = {};
    script.active_fails_after = Milliseconds(ms);
    scripts.push_back({"active fails", script, false});
    script.active_sends_data = true;
    scripts.push_back({"active fails having sent", script, false});
  }
  return scripts;
}

// If more are lost, a connection may end at its deadline, for both sides.
constexpr int kMostLost = 8;

bool Agreed(World& world, const NamedScript& script) {
  const bool may_stay_up = script.stays_up;
  const bool must_stay_up = script.stays_up && world.lost() <= kMostLost;
  if (world.Up(0) != world.Up(1) || (world.Up(0) ? !may_stay_up : must_stay_up)) return false;
  for (int side = 0; side < 2; ++side) {
    if (!world.Up(side) && !world.Over(side)) return false;
  }
  return world.Up(0) || world.active().ended || world.active().dropped;
}

// Each end has come to rest, whatever they think of each other.
bool AtRest(World& world, const NamedScript&) {
  return (world.Up(0) || world.Over(0)) && (world.Up(1) || world.Over(1));
}

// Runs `script` on a network that `make_network` makes; repeats a failed run to describe it.
template <typename MakeNetwork>
void Explore(const NamedScript& script, const MakeNetwork& make_network, bool (*good)(World&, const NamedScript&),
             const std::string& what) {
  World world(script.script, make_network(), false);
  world.Run(Seconds(120));
  if (good(world, script) && !::testing::Test::HasFailure()) return;
  World again(script.script, make_network(), true);
  again.Run(Seconds(120));
  FAIL() << script.name << ", " << what << "\n" << again.log();
}

TEST(ConnectionExploreTest, EveryCombinationOfLossesEndsAgreed) {
  constexpr int kMessages = 10;
  for (const NamedScript& script : Scripts()) {
    for (uint32_t lost = 0; lost < 1u << kMessages; ++lost) {
      if (std::bitset<kMessages>(lost).count() > kMostLost) continue;
      const auto network = [lost] {
        return [lost](int number) {
          const bool lose = number < kMessages && (lost >> number & 1) != 0;
          return lose ? Arrivals() : Arrivals{Duration()};
        };
      };
      ASSERT_NO_FATAL_FAILURE(Explore(script, network, Agreed, "lost " + std::to_string(lost)));
    }
  }
}

TEST(ConnectionExploreTest, AnyTwoMessagesRepeatedOrDelayedEndAgreed) {
  constexpr int kMessages = 6;
  const Duration delays[] = {Duration(), Milliseconds(3), Milliseconds(160), Milliseconds(2500)};
  for (const NamedScript& script : Scripts()) {
    for (int pair = 0; pair < kMessages * kMessages; ++pair) {
      for (const Duration delay : delays) {
        for (const bool twice : {false, true}) {
          const auto network = [=] {
            return [=](int number) {
              if (number != pair / kMessages && number != pair % kMessages) return Arrivals{Duration()};
              return twice ? Arrivals{Duration(), delay} : Arrivals{delay};
            };
          };
          ASSERT_NO_FATAL_FAILURE(
              Explore(script, network, Agreed, absl::StrCat(pair, " late by ", delay.milliseconds(), " ms ", twice)));
        }
      }
    }
  }
}

TEST(ConnectionExploreTest, SeededNetworksEndAgreed) {
  for (const NamedScript& script : Scripts()) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
      const auto network = [seed] {
        base::Random random(seed);
        const double loss = random.Fraction() * 0.5;
        const double repeat = random.Fraction() * 0.5;
        const uint64_t spread = 1 + random.Below(400);
        return [random, loss, repeat, spread](int number) mutable {
          Arrivals arrivals;
          if (number > 14 || !random.Chance(loss)) arrivals.push_back(Milliseconds(random.Below(spread)));
          if (!arrivals.empty() && random.Chance(repeat)) arrivals.push_back(Milliseconds(random.Below(spread * 4)));
          return arrivals;
        };
      };
      ASSERT_NO_FATAL_FAILURE(Explore(script, network, Agreed, "seed " + std::to_string(seed)));
    }
  }
}

// The network breaks for good after some message: everything that is not established must end by
// itself.
TEST(ConnectionExploreTest, ASilentPeerIsGivenUpInBoundedTime) {
  for (const NamedScript& script : Scripts()) {
    for (int last = 0; last < 12; ++last) {
      const auto network = [last] {
        return [last](int number) { return number < last ? Arrivals{Duration()} : Arrivals(); };
      };
      ASSERT_NO_FATAL_FAILURE(Explore(script, network, AtRest, "cut after " + std::to_string(last)));
    }
  }
}

}  // namespace
}  // namespace tokamak::verbs::soft

// Credits: bounded, and never both sides waiting for ever.
#include "lib/transport/credits.h"

#include <deque>

#include "gtest/gtest.h"
#include "lib/base/random.h"

namespace tokamak::transport {
namespace {

TEST(CreditsTest, TakeLeavesTheReservedOne) {
  Credits credits(8, 8);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(credits.Take());
  EXPECT_FALSE(credits.Take());
  EXPECT_FALSE(credits.can_take());
  EXPECT_EQ(credits.available(), 1u);
}

TEST(CreditsTest, AReturnMayTakeTheReservedOne) {
  Credits credits(8, 8);
  while (credits.Take()) {
  }
  EXPECT_TRUE(credits.TakeForReturn());
  EXPECT_FALSE(credits.TakeForReturn());
}

TEST(CreditsTest, APeerThatGrantsMoreThanItHasIsBroken) {
  Credits credits(8, 8);
  ASSERT_TRUE(credits.Take());
  EXPECT_EQ(credits.Grant(2).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(credits.available(), 7u);
  EXPECT_TRUE(credits.Grant(1).ok());
  EXPECT_FALSE(credits.Grant(1).ok());
  EXPECT_FALSE(credits.Grant(UINT32_MAX).ok());
}

TEST(CreditsTest, AReturnIsDueWhenAQuarterIsOwed) {
  Credits credits(8, 128);
  credits.Owe(31);
  EXPECT_FALSE(credits.return_due());
  credits.Owe(1);
  EXPECT_TRUE(credits.return_due());
  EXPECT_EQ(credits.TakeOwed(), 32);
  EXPECT_FALSE(credits.return_due());
  EXPECT_EQ(credits.TakeOwed(), 0);
}

// Two sides that send whenever they can, over queues, in any order: each message arrives, and then
// it is quiet.
TEST(CreditsTest, NeitherSideEverWaitsForEver) {
  struct Side {
    Credits credits;
    int to_send = 1000;
    int got = 0;
    std::deque<std::pair<bool, uint16_t>> inbox;  // whether it is an ordinary message; the credits in it
  };
  for (uint64_t seed = 0; seed < 200; ++seed) {
    base::Random random(seed);
    Side sides[2] = {{Credits(8 + seed % 5, 8), 1000, 0, {}}, {Credits(8, 8 + seed % 5), 1000, 0, {}}};
    int quiet = 0;
    while (quiet < 100) {
      const size_t turn = random.Below(2);
      Side& me = sides[turn];
      Side& peer = sides[1 - turn];
      bool acted = false;
      if (random.Below(2) == 0 && !me.inbox.empty()) {
        const auto [ordinary, credits] = me.inbox.front();
        me.inbox.pop_front();
        ASSERT_TRUE(me.credits.Grant(credits).ok());
        me.got += ordinary;
        me.credits.Owe(1);
        acted = true;
      } else if (me.to_send > 0 && me.credits.Take()) {
        --me.to_send;
        peer.inbox.push_back({true, me.credits.TakeOwed()});
        acted = true;
      } else if (me.credits.return_due() && me.credits.TakeForReturn()) {
        peer.inbox.push_back({false, me.credits.TakeOwed()});
        acted = true;
      }
      quiet = acted ? 0 : quiet + 1;
    }
    EXPECT_EQ(sides[0].got, 1000) << "seed " << seed;
    EXPECT_EQ(sides[1].got, 1000) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tokamak::transport

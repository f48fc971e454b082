// Credits: bounded, and never both sides waiting for ever.
#include "lib/transport/channels/credits.h"

#include <algorithm>
#include <deque>

#include "gtest/gtest.h"
#include "lib/base/random.h"
#include "lib/transport/messages/hello.h"

namespace tokamak::transport {
namespace {

TEST(CreditsTest, TakeLeavesTheReservedOne) {
  Credits credits(8, 8, 8);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(credits.Take());
  EXPECT_FALSE(credits.Take());
  EXPECT_FALSE(credits.can_take());
  EXPECT_EQ(credits.available(), 2u);
}

TEST(CreditsTest, AReturnMayTakeTheReservedOne) {
  Credits credits(8, 8, 8);
  while (credits.Take()) {
  }
  EXPECT_TRUE(credits.TakeForReturn());
  EXPECT_FALSE(credits.TakeForReturn());
  EXPECT_EQ(credits.available(), 1u) << "the probe's";
}

TEST(CreditsTest, AProbeHasACreditOfItsOwn) {
  Credits credits(4, 4, 4);
  while (credits.Take()) {
  }
  EXPECT_TRUE(credits.can_probe());
  EXPECT_TRUE(credits.TakeForProbe());
  EXPECT_FALSE(credits.TakeForProbe());
  EXPECT_TRUE(credits.TakeForReturn()) << "the reserved one is still there";
  EXPECT_EQ(credits.available(), 0u);
  EXPECT_TRUE(credits.Grant(4).ok());
  EXPECT_TRUE(credits.Take());
  EXPECT_TRUE(credits.Take());
  EXPECT_FALSE(credits.Take());
  EXPECT_TRUE(credits.TakeForProbe()) << "it came back with the others";
}

TEST(CreditsTest, APeerThatGrantsTooMuchIsBroken) {
  Credits credits(8, 8, 8);
  ASSERT_TRUE(credits.Take());
  EXPECT_EQ(credits.Grant(2).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(credits.available(), 7u);
  EXPECT_TRUE(credits.Grant(1).ok());
  EXPECT_FALSE(credits.Grant(1).ok());
  EXPECT_FALSE(credits.Grant(UINT32_MAX).ok());
}

TEST(CreditsTest, AReturnIsDueWhenAQuarterIsOwed) {
  Credits credits(8, 8, 128);
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
    const auto more = static_cast<uint32_t>(kMinFirstSlots + seed % 10);
    Side sides[2] = {{Credits(more, more, kMinFirstSlots), 1000, 0, {}},
                     {Credits(kMinFirstSlots, kMinFirstSlots, more), 1000, 0, {}}};
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
      } else if (quiet == 0 && random.Below(20) == 0 && me.credits.TakeForProbe()) {
        peer.inbox.push_back({false, me.credits.TakeOwed()});
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

TEST(CreditsTest, AWindowThatGrowsIsGrantedAsFarAsThePeerAllows) {
  Credits credits(4, 13, 4);
  EXPECT_EQ(credits.spare(), 0u);
  EXPECT_TRUE(credits.Grant(9).ok());
  EXPECT_EQ(credits.spare(), 9u);
  EXPECT_EQ(credits.Grant(1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(credits.available(), 13u);
}

TEST(CreditsTest, ABatchIsTwoAtLeastAndGrowsWithTheWindow) {
  Credits credits(4, 4, 4);
  EXPECT_EQ(credits.batch(), 2u);
  credits.SetOwn(48);
  EXPECT_EQ(credits.batch(), 12u);
  credits.SetOwn(5);
  EXPECT_EQ(credits.batch(), 2u);
}

// Windows that grow and shrink at any time, as their peers ask for it and give them up.
TEST(CreditsTest, NeitherSideWaitsForEverWhileWindowsGrowAndShrink) {
  constexpr uint32_t kMost = 32;
  enum class Kind { kOrdinary, kReturn, kRelease };
  struct Message {
    Kind kind;
    uint16_t credits;
    bool more;
  };
  struct Side {
    Credits credits{kMinFirstSlots, kMost, kMinFirstSlots};
    uint32_t window = kMinFirstSlots;
    int to_send = 500;
    int got = 0;
    std::deque<Message> inbox;
  };
  for (uint64_t seed = 0; seed < 200; ++seed) {
    base::Random random(seed);
    Side sides[2];
    int quiet = 0;
    while (quiet < 200) {
      const size_t turn = random.Below(2);
      Side& me = sides[turn];
      Side& peer = sides[1 - turn];
      bool acted = true;
      if (random.Below(2) == 0 && !me.inbox.empty()) {
        const Message message = me.inbox.front();
        me.inbox.pop_front();
        ASSERT_TRUE(me.credits.Grant(message.credits).ok());
        me.got += message.kind == Kind::kOrdinary;
        if (message.kind == Kind::kRelease) {
          ASSERT_GT(me.window, kMinFirstSlots) << "nobody gives up the first ones, seed " << seed;
          me.credits.SetOwn(--me.window);
        } else {
          me.credits.Owe(1);
        }
        if (message.more && me.window < kMost) {
          const uint32_t more = std::min(4 * me.window, kMost) - me.window;
          me.credits.SetOwn(me.window += more);
          me.credits.Owe(more);
        }
      } else if (random.Below(20) == 0 && me.credits.spare() > 0) {
        ASSERT_TRUE(me.credits.Take());
        peer.inbox.push_back({Kind::kRelease, me.credits.TakeOwed(), false});
      } else if (quiet == 0 && random.Below(20) == 0 && me.credits.TakeForProbe()) {
        peer.inbox.push_back({Kind::kReturn, me.credits.TakeOwed(), false});
      } else if (me.to_send > 0 && me.credits.Take()) {
        --me.to_send;
        peer.inbox.push_back({Kind::kOrdinary, me.credits.TakeOwed(), !me.credits.can_take() && me.to_send > 0});
      } else if (me.credits.return_due() && me.credits.TakeForReturn()) {
        peer.inbox.push_back({Kind::kReturn, me.credits.TakeOwed(), me.to_send > 0});
      } else {
        acted = false;
      }
      quiet = acted ? 0 : quiet + 1;
      ASSERT_LE(peer.inbox.size(), peer.window) << "each message meets a slot, seed " << seed;
    }
    EXPECT_EQ(sides[0].got, 500) << "seed " << seed;
    EXPECT_EQ(sides[1].got, 500) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tokamak::transport

// Places that parties share: nobody takes the last ones, and whoever waits has its turn.
#include "lib/base/fair_turns.h"

#include <deque>
#include <string>

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

class FairTurnsTest : public testing::Test {
 protected:
  struct One {
    std::string name;
    FairTurns<std::string>::Turn turn;
  };
  One& Begin(const std::string& party) {
    One& one = all_.emplace_back();
    one.name = party + std::to_string(++counts_[party]);
    (void)turns_.Begin(party, one.turn);
    return one;
  }
  // Returns the turns that begin now, in order.
  std::string Next() {
    std::string names;
    while (const auto* turn = turns_.Next()) {
      for (const One& one : all_) {
        if (&one.turn == turn) names += one.name + " ";
      }
    }
    return names;
  }
  std::string End(One& one) {
    turns_.End(one.turn);
    return Next();
  }
  void TearDown() override {
    for (One& one : all_) {
      if (one.turn.waits() || one.turn.runs()) turns_.End(one.turn);
    }
    EXPECT_EQ(turns_.running() + turns_.waiting(), 0u);
  }

  std::map<std::string, int> counts_;
  std::deque<One> all_;
  FairTurns<std::string> turns_{8, 6};
};

TEST_F(FairTurnsTest, AGreedyPartyGetsHalfAndAnotherBeginsAtOnce) {
  for (int i = 0; i < 100; ++i) Begin("a");
  EXPECT_EQ(turns_.running(), 4u);
  EXPECT_TRUE(Begin("b").turn.runs());
  EXPECT_TRUE(Begin("b").turn.runs());
  EXPECT_TRUE(Begin("b").turn.waits()) << "it would have three, and one place is left";
  EXPECT_TRUE(Begin("c").turn.runs());
}

TEST_F(FairTurnsTest, TheTurnsOfOnePartyKeepTheirOrder) {
  for (int i = 0; i < 7; ++i) Begin("a");
  EXPECT_EQ(End(all_[2]), "a5 ");
  turns_.End(all_[5].turn);  // a6 does not wait any more
  EXPECT_EQ(End(all_[0]), "a7 ");
}

TEST_F(FairTurnsTest, PartiesTakeTurns) {
  for (int i = 0; i < 6; ++i) Begin("a");
  for (int i = 0; i < 6; ++i) Begin("b");
  for (int i = 0; i < 6; ++i) Begin("c");
  EXPECT_EQ(turns_.running(), 7u) << "4 and 2 and 1";
  EXPECT_EQ(End(all_[0]), "c2 ") << "a and b have more than are free";
  EXPECT_EQ(End(all_[1]), "") << "each has two, and two are free";
  EXPECT_EQ(End(all_[2]), "a5 ");
}

TEST_F(FairTurnsTest, APartyWithoutATurnWaitsOnlyWhileAllAreTaken) {
  for (const char* party : {"a", "b", "c", "d", "e", "f", "g", "h"}) EXPECT_TRUE(Begin(party).turn.runs());
  EXPECT_TRUE(Begin("i").turn.waits());
  EXPECT_EQ(End(all_[3]), "i1 ");
}

TEST(FairTurnsOfOnePlace, TheOnlyPlaceIsTaken) {
  FairTurns<int> turns(1, 1);
  FairTurns<int>::Turn first, second;
  EXPECT_TRUE(turns.Begin(1, first));
  EXPECT_FALSE(turns.Begin(1, second));
  turns.End(first);
  EXPECT_EQ(turns.Next(), &second);
  turns.End(second);
}

TEST(FairTurnsOfMany, OnePartyHasAtMostItsBound) {
  FairTurns<int> turns(1000, 3);
  std::deque<FairTurns<int>::Turn> all(10);
  for (auto& turn : all) (void)turns.Begin(1, turn);
  EXPECT_EQ(turns.running(), 3u);
  EXPECT_EQ(turns.waiting(), 7u);
  for (auto& turn : all) turns.End(turn);
}

}  // namespace
}  // namespace tokamak::base

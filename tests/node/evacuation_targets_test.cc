// An evacuation's choice of the next node to ask.
#include "lib/node/deletes/evacuation_targets.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::node {
namespace {

using base::Milliseconds;
using base::Seconds;
using Choice = EvacuationTargets::Choice;

class EvacuationTargetsTest : public testing::Test {
 protected:
  EvacuationTargetsTest() { Know({"a", "b", "self"}); }

  void Know(const std::vector<std::string>& names) {
    std::vector<directory::NodeInfo> nodes;
    for (const std::string& name : names) {
      directory::NodeInfo node;
      node.id = name;
      node.engines = {"10.0.0.1:7000"};
      node.capacity = 1000;
      nodes.push_back(node);
    }
    targets_.Update(nodes, "self");
  }
  // Returns the node to ask, or why there is none.
  std::string Next(uint64_t size = 10, const std::vector<directory::NodeId>& but = {}) {
    directory::NodeId chosen;
    static constexpr const char* kWhys[] = {"found", "busy", "refused", "no room", "set aside", "too large", "nobody"};
    const Choice choice = targets_.Choose(size, but, now_, &chosen);
    return choice == Choice::kFound ? chosen : kWhys[static_cast<size_t>(choice)];
  }
  EvacuationTargets::Target& At(const std::string& name) { return *targets_.Find(name); }
  static base::ObjectVersion Version(uint64_t i) { return {base::ObjectId::FromName(std::to_string(i)), {}}; }

  EvacuationTargets targets_;
  base::Time now_ = base::Time() + Seconds(1);
};

TEST_F(EvacuationTargetsTest, TargetsAreAskedInTurn) {
  EXPECT_EQ(Next(), "a");
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(Next(), "a");
  EXPECT_EQ(Next(10, {"b"}), "a");
  EXPECT_EQ(Next(10, {"a", "b"}), "refused");
  EXPECT_EQ(Next(1001), "too large");
}

TEST_F(EvacuationTargetsTest, ATargetThatIsAskedEnoughIsSkipped) {
  for (uint64_t i = 0; i < EvacuationTargets::kAtOnceEach; ++i) At("a").asks.insert(Version(i));
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(Next(10, {"b"}), "busy");
  EXPECT_TRUE(targets_.AnyOpen(now_));
}

TEST_F(EvacuationTargetsTest, ATargetThatDoesNotAnswerIsSetAsideForLongerAndLonger) {
  targets_.SetAside(At("a"), now_);
  targets_.SetAside(At("a"), now_);  // together with the other
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(Next(10, {"b"}), "refused");
  now_ = now_ + EvacuationTargets::kFirstSetAside;
  EXPECT_EQ(Next(10, {"b"}), "a");
  // One object shows whether it answers.
  At("a").asks.insert(Version(1));
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(Next(), "b");
  targets_.SetAside(At("a"), now_);
  At("a").asks.clear();
  now_ = now_ + EvacuationTargets::kFirstSetAside;
  EXPECT_EQ(Next(), "b");
  now_ = now_ + EvacuationTargets::kFirstSetAside;
  EXPECT_EQ(Next(), "a");
  targets_.Answers(At("a"));
  At("a").asks.insert(Version(1));
  EXPECT_EQ(Next(10, {"b"}), "a");
}

TEST_F(EvacuationTargetsTest, ATargetWithoutRoomIsAskedForSmallerObjects) {
  targets_.HasNoRoom(At("a"), 100, now_);
  EXPECT_EQ(Next(99), "a");
  EXPECT_EQ(Next(100), "b");
  EXPECT_EQ(Next(100), "b");
  targets_.HasNoRoom(At("b"), 50, now_);
  EXPECT_EQ(Next(100), "no room");
  now_ = now_ + EvacuationTargets::kNoRoomFor;
  EXPECT_EQ(Next(100), "a");
}

TEST_F(EvacuationTargetsTest, ATargetThatLeftIsForgottenWhenNothingIsOpenThere) {
  At("a").asks.insert(Version(1));
  Know({"b", "self"});
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(Next(), "b");
  ASSERT_NE(targets_.Find("a"), nullptr);
  At("a").asks.clear();
  Know({"b", "self"});
  EXPECT_EQ(targets_.Find("a"), nullptr);
  Know({"self"});
  EXPECT_TRUE(targets_.empty());
  EXPECT_EQ(Next(), "nobody");
}

}  // namespace
}  // namespace tokamak::node

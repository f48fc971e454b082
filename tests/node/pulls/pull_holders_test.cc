#include "lib/node/pulls/pull_holders.h"

#include <set>
#include <string>
#include <vector>

#include "lib/node/engines/threaded_engine.h"
#include "tests/node/membership_fixture.h"
#include "tests/node/pulls/pull_bench.h"

namespace tokamak::node {
namespace {

// Node "a" chooses among nodes that the directory names.
class PullHoldersTest : public MembershipTest {
 protected:
  void SetUp() override {
    Start();
    for (const char* node : {"b", "c", "d"}) Joins(node);
    bench_.RefreshPeers();
    scheduler_.RunFor(base::Milliseconds(1));
  }
  void Joins(const directory::NodeId& node) {
    directory::JoinRequest request;
    request.node = {node, 1, {"10.0.0.2:7000"}, "soft", 0};
    request.lease = base::Seconds(1000);
    calls_.push_back(directory_.local().Join(request, base::Seconds(1), [](const auto&) {}));
  }
  // As many pulls as a peer bears run from `node`.
  void KeepBusy(const directory::NodeId& node) {
    while (bench_.peers.UseOf(node) == Peers::Use::kReady) bench_.peers.Begin(node);
  }
  PullHolders::Choice Choose(const std::vector<directory::NodeId>& named) { return holders_.Choose(named, version_); }

  const base::ObjectVersion version_{Id(1), base::Generation{7}};
  ThreadedEngine engine_{loop_};
  PullBench bench_{loop_, store_, directory_, *membership_, copies_, {&engine_}};
  PullHolders holders_{bench_.context};
};

TEST_F(PullHoldersTest, TheHolderWithTheFewestPullsIsFirst) {
  bench_.peers.Begin("b");
  bench_.peers.Begin("b");
  bench_.peers.Begin("d");
  EXPECT_EQ(Choose({"b", "c", "d"}).ready, "c");
  holders_.NoteTried("c");
  EXPECT_EQ(Choose({"b", "c", "d"}).ready, "d");
}

TEST_F(PullHoldersTest, AmongEqualsChanceDecides) {
  std::set<directory::NodeId> chosen;
  for (int i = 0; i < 100; ++i) chosen.insert(Choose({"b", "c"}).ready);
  EXPECT_EQ(chosen, (std::set<directory::NodeId>{"b", "c"}));
}

TEST_F(PullHoldersTest, EachHolderIsTriedOnceInARound) {
  holders_.NoteTried("b");
  EXPECT_FALSE(holders_.none_tried());
  EXPECT_TRUE(Choose({"b"}).ready.empty());
  holders_.BeginRound();
  EXPECT_TRUE(holders_.none_tried());
  EXPECT_EQ(Choose({"b"}).ready, "b");
}

TEST_F(PullHoldersTest, AForgivenHolderIsTriedAgain) {
  holders_.NoteTried("b");
  holders_.Forgive("b");
  EXPECT_TRUE(holders_.none_tried());
  EXPECT_EQ(Choose({"b"}).ready, "b");
}

TEST_F(PullHoldersTest, BusyHoldersAreNamed) {
  KeepBusy("b");
  KeepBusy("c");
  const PullHolders::Choice choice = Choose({"b", "c"});
  EXPECT_TRUE(choice.ready.empty());
  EXPECT_EQ(choice.busy, (std::vector<directory::NodeId>{"b", "c"}));
  EXPECT_FALSE(choice.look_up);
}

TEST_F(PullHoldersTest, AnUnknownHolderIsLookedUpOnceInARound) {
  EXPECT_TRUE(Choose({"stranger"}).look_up);
  holders_.NoteRefreshed();
  EXPECT_FALSE(Choose({"stranger"}).look_up);
  holders_.BeginRound();
  EXPECT_TRUE(Choose({"stranger"}).look_up);
}

TEST_F(PullHoldersTest, AFailedHolderIsLookedUp) {
  bench_.peers.Begin("b");
  bench_.peers.Ended("b", Peers::End::kFailed);
  const PullHolders::Choice choice = Choose({"b"});
  EXPECT_TRUE(choice.ready.empty());
  EXPECT_TRUE(choice.look_up);
}

// The directory takes this node for a holder, and it has no copy.
TEST_F(PullHoldersTest, ThisNodeIsNoHolderAndCorrectsTheDirectory) {
  Say("b", directory::Update::Kind::kAnnounce, version_);
  directory_.said.clear();
  const PullHolders::Choice choice = Choose({"a", "b"});
  EXPECT_EQ(choice.ready, "b");
  EXPECT_FALSE(holders_.none_tried());
  scheduler_.RunFor(base::Milliseconds(10));
  EXPECT_EQ(directory_.Count("withdraw"), 1u);
}

}  // namespace
}  // namespace tokamak::node

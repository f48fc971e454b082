#include "lib/node/cluster/peer_news.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::node {
namespace {

using base::Seconds;
using directory::Liveness;

class PeerNewsTest : public testing::Test {
 protected:
  using Roster = std::vector<directory::RosterEntry>;

  static directory::RosterEntry Entry(const directory::NodeId& id, Liveness liveness = Liveness::kAlive,
                                      uint64_t incarnation = 1) {
    return {{id, incarnation, {"10.0.0.1:7000"}, "soft", 0}, liveness, {}};
  }
  // Returns the news of `roster`, a second after the directory's last answer.
  std::vector<std::string> Read(const Roster& roster) {
    told_.clear();
    now_ = now_ + Seconds(1);
    news_.Read(roster, now_);
    return told_;
  }

  using Told = std::vector<std::string>;
  Told told_;
  base::Time now_;
  PeerNews news_{Seconds(3), [this](const directory::NodeId& id, PeerChange change) {
                   static constexpr const char* kNames[] = {"fails", "answers", "silent", "back", "restarted", "left"};
                   told_.push_back(id + " " + kNames[static_cast<size_t>(change)]);
                 }};
};

TEST_F(PeerNewsTest, ANodeThatIsSeenForTheFirstTimeIsNoNews) { EXPECT_EQ(Read({Entry("a"), Entry("b")}), Told()); }

TEST_F(PeerNewsTest, SilenceAndReturnAreReportedOnceEach) {
  Read({Entry("a"), Entry("b")});
  EXPECT_EQ(Read({Entry("a", Liveness::kSilent), Entry("b")}), Told{"a silent"});
  EXPECT_EQ(Read({Entry("a", Liveness::kSilent), Entry("b")}), Told());
  EXPECT_EQ(Read({Entry("a"), Entry("b")}), Told{"a back"});
  EXPECT_EQ(Read({Entry("a"), Entry("b")}), Told());
}

TEST_F(PeerNewsTest, ASilentNodeThatIsGoneIsNoNewsAgain) {
  EXPECT_EQ(Read({Entry("a", Liveness::kSilent)}), Told{"a silent"}) << "also where it was never seen alive";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Read({}), Told());
  EXPECT_EQ(Read({Entry("a")}), Told()) << "nobody remembers it";
}

TEST_F(PeerNewsTest, ALaterLifeIsReportedAsARestart) {
  Read({Entry("a"), Entry("b")});
  EXPECT_EQ(Read({Entry("a", Liveness::kAlive, 2), Entry("b", Liveness::kSilent)}), (Told{"a restarted", "b silent"}));
  EXPECT_EQ(Read({Entry("a", Liveness::kAlive, 2), Entry("b", Liveness::kAlive, 2)}), Told{"b restarted"});
}

TEST_F(PeerNewsTest, ANodeHasLeftOnceItIsNotNamedForAWhile) {
  Read({Entry("a")});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Read({}), Told());
  EXPECT_EQ(Read({Entry("a")}), Told()) << "a directory that had just begun";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Read({}), Told());
  EXPECT_EQ(Read({}), Told{"a left"});
  EXPECT_EQ(Read({}), Told());
}

}  // namespace
}  // namespace tokamak::node

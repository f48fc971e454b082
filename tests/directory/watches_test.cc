// Locates that wait, asked of the server together.
#include "lib/directory/remote/watches.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/random.h"
#include "tests/directory/remote_fixture.h"

namespace tokamak::directory {
namespace {

using base::Milliseconds;
using base::Seconds;

class WatchesTest : public RemoteDirectoryTest {
 protected:
  WatchesTest() { EXPECT_TRUE(Join("a").ok()); }

  // The result of one Locate.
  struct Wait {
    base::Time asked;
    base::Time ended;
    bool done = false;
    absl::StatusOr<LocatedObject> result = absl::InternalError("no answer");
    base::Pending handle;
  };
  std::shared_ptr<Wait> Start(int number, base::Duration wait, base::Duration deadline) {
    auto one = std::make_shared<Wait>();
    one->asked = loop_.Now();
    one->handle = remote_.Locate({Id(std::to_string(number)), wait, deadline, puller_},
                                 [this, noted = one.get()](absl::StatusOr<LocatedObject> info) {
                                   EXPECT_FALSE(noted->done);
                                   noted->done = true;
                                   noted->ended = loop_.Now();
                                   noted->result = std::move(info);
                                 });
    EXPECT_FALSE(one->done);
    return one;
  }
  std::shared_ptr<Wait> Start(int number, base::Duration wait) { return Start(number, wait, wait + kDeadline); }
  std::vector<std::shared_ptr<Wait>> StartMany(int count, base::Duration wait) {
    std::vector<std::shared_ptr<Wait>> waits;
    for (int i = 0; i < count; ++i) waits.push_back(Start(i, wait));
    return waits;
  }
  void Appear(int number) {
    const Update update = Announcement(std::to_string(number));
    appearing_.push_back(local_.Update("a", {}, {&update, 1}, kDeadline, [](const auto& statuses) {
      for (const absl::Status& status : *statuses) EXPECT_TRUE(status.ok()) << status;
    }));
  }
  // The server's process ends, and another begins in its place.
  void RestartServer() { server_ = std::make_unique<DirectoryServer>(server_loop_, local_, 16 * 1024); }

  NodeId puller_;
  std::vector<base::Pending> appearing_;
};

TEST_F(WatchesTest, ManyWaitsAreFewCalls) {
  const uint64_t before = caller_.calls();
  const auto waits = StartMany(2000, Seconds(60));
  scheduler_.RunFor(Seconds(59));
  EXPECT_LE(caller_.pending(), 1u) << "one poll";
  EXPECT_LE(caller_.calls() - before, 10u);
  EXPECT_EQ(local_.waiting(), 2000u);
  scheduler_.RunFor(Seconds(2));
  for (const auto& wait : waits) EXPECT_TRUE(absl::IsNotFound(wait->result.status()));
  EXPECT_LE(caller_.calls() - before, 50u);
  scheduler_.RunFor(Seconds(60));
  EXPECT_EQ(caller_.pending(), 0u);
  EXPECT_EQ(local_.waiting(), 0u);
}

TEST_F(WatchesTest, APresentObjectTakesOneCall) {
  Appear(1);
  scheduler_.RunFor(Seconds(1));
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = caller_.calls();
    const auto wait = Start(1, Seconds(10));
    scheduler_.RunFor(Seconds(1));
    EXPECT_TRUE(wait->result.ok()) << wait->result.status();
    EXPECT_EQ(caller_.calls() - before, 1u);
    EXPECT_EQ(wait->ended - wait->asked, caller_.one_way * 2);
    scheduler_.RunFor(DirectoryServer::kSessionSilence);
  }
}

TEST_F(WatchesTest, AnAppearingObjectIsReportedAtOnceToItsWaiter) {
  const auto waits = StartMany(5000, Seconds(60));
  scheduler_.RunFor(Seconds(5));
  for (const int number : {4999, 0, 777}) {
    Appear(number);
    const base::Time appeared = scheduler_.Now();
    scheduler_.RunFor(Milliseconds(10));
    const Wait& wait = *waits[static_cast<size_t>(number)];
    ASSERT_TRUE(wait.done);
    EXPECT_TRUE(wait.result.ok());
    EXPECT_EQ(wait.ended - appeared, caller_.one_way);
  }
}

TEST_F(WatchesTest, AFloodOfWaitsIsSentInFewCallsAtOnce) {
  caller_.one_way = Milliseconds(1);
  const auto waits = StartMany(20000, Seconds(60));
  size_t most = 0;
  for (int i = 0; i < 500; ++i) {
    scheduler_.RunFor(base::Microseconds(100));
    most = std::max(most, caller_.pending());
  }
  EXPECT_LE(most, Watches::kMaxBegins + 1) << "with the poll";
  EXPECT_EQ(local_.waiting(), 20000u);
}

// A puller that waited no longer, and then said that nothing is coming to it, must not be entered
// as coming after that.
TEST_F(WatchesTest, ADroppedWaiterIsOutBeforeTheNextCallHoweverManyAreUnderWay) {
  ASSERT_TRUE(Join("p").ok());
  puller_ = "p";
  caller_.one_way = Milliseconds(10);
  auto waits = StartMany(100, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  ASSERT_EQ(local_.waiting(), 100u);
  std::vector<base::Pending> said;
  size_t most = 0;
  for (size_t i = 0; i < 60; ++i) {
    waits[i]->handle.reset();
    const Update nothing{Update::Kind::kWithdraw, {Id(std::to_string(i)), base::kNoGeneration}, 0, 0};
    said.push_back(remote_.Update("p", {}, {&nothing, 1}, kDeadline, [](const auto&) {}));
    scheduler_.RunFor(base::Microseconds(10));
    most = std::max(most, caller_.pending() - said.size());
  }
  EXPECT_LE(most, Watches::kMaxCalls + 1);
  scheduler_.RunFor(Milliseconds(11));  // the last of these is there
  for (int i = 0; i < 60; ++i) Appear(i);
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(local_.waiting(), 40u);
  for (int i = 0; i < 60; ++i) {
    const auto deleted = Delete(std::to_string(i));
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    EXPECT_EQ(deleted->holders, std::vector<NodeId>{"a"}) << i;
  }
}

// Whatever their ids, the waits asked for first reach the server first.
TEST_F(WatchesTest, WaitsReachTheServerInTheirOrder) {
  const auto many = StartMany(5000, Seconds(60));
  const auto last = Start(5000, Seconds(60));
  for (int i = 0; i <= 5000; ++i) Appear(i);
  scheduler_.RunFor(Seconds(1));
  for (size_t i = 1; i < many.size(); ++i) {
    ASSERT_TRUE(many[i]->result.ok());
    EXPECT_LE(many[i - 1]->ended, many[i]->ended);
  }
  EXPECT_TRUE(last->result.ok());
}

TEST_F(WatchesTest, ALaterWaiterIsAnsweredAtOnceWhateverElseWaits) {
  const auto waits = StartMany(5000, Seconds(60));
  Appear(5000);
  scheduler_.RunFor(Seconds(1));
  const auto wait = Start(5000, Seconds(60));
  scheduler_.RunFor(Seconds(2));
  ASSERT_TRUE(wait->result.ok());
  EXPECT_EQ(wait->ended - wait->asked, caller_.one_way * 2);
}

TEST_F(WatchesTest, EachWaitEndsAtItsOwnTime) {
  base::Random random(1);
  std::vector<std::pair<std::shared_ptr<Wait>, base::Duration>> waits;
  for (int i = 0; i < 3000; ++i) {
    const base::Duration length = Milliseconds(1 + static_cast<int64_t>(random.Below(130'000)));
    waits.emplace_back(Start(static_cast<int>(random.Below(1000)), length), length);
  }
  scheduler_.RunFor(Seconds(200));
  for (const auto& [wait, length] : waits) {
    ASSERT_TRUE(absl::IsNotFound(wait->result.status()));
    EXPECT_EQ(wait->ended - wait->asked, length + caller_.one_way * 2) << "nobody has it: the server's word";
  }
}

TEST_F(WatchesTest, SeveralWaitersForOneObjectAreAllAnswered) {
  const auto early = Start(1, Milliseconds(100));
  const auto late = Start(1, Seconds(30));
  const auto later = Start(1, Seconds(40));
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(absl::IsNotFound(early->result.status()));
  Appear(1);
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(late->result.ok());
  EXPECT_TRUE(later->result.ok());
}

TEST_F(WatchesTest, ObjectsBeyondOneReplyAreFoundAllTheSame) {
  UseSmallReplies();
  std::vector<std::shared_ptr<Wait>> waits;
  for (int i = 0; i < 600; ++i) waits.push_back(Start(i, i % 2 == 0 ? Seconds(30) : Seconds(1)));
  scheduler_.RunFor(Seconds(1) - Milliseconds(1));
  for (int i = 0; i < 600; ++i) Appear(i);  // just before many are asked for the last time
  scheduler_.RunFor(Seconds(2));
  for (const auto& wait : waits) EXPECT_TRUE(wait->result.ok()) << wait->result.status();
}

TEST_F(WatchesTest, ADroppedWaitIsDroppedAtTheServer) {
  auto waits = StartMany(2000, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(local_.waiting(), 2000u);
  waits.resize(10);
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_EQ(local_.waiting(), 10u);
  waits.clear();
  scheduler_.RunFor(Milliseconds(1));
  EXPECT_EQ(local_.waiting(), 0u);
  scheduler_.RunFor(kPollTurn);
  EXPECT_EQ(caller_.pending(), 0u);
}

// A withdrawal that follows is not overtaken: the object may appear between them.
TEST_F(WatchesTest, TheServerKnowsOfADroppedWaitBeforeTheNextCall) {
  ASSERT_TRUE(Join("b").ok());
  puller_ = "b";
  auto wait = Start(1, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  wait.reset();
  const Update withdrawal{Update::Kind::kWithdraw, {Id("1"), base::kNoGeneration}, 0, 0};
  const base::Pending update = remote_.Update("b", {}, {&withdrawal, 1}, kDeadline, [](const auto&) {});
  const base::Duration one_way = std::exchange(caller_.one_way, Milliseconds(5));  // of what leaves after it
  scheduler_.RunFor(one_way);
  Appear(1);
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(Delete("1")->holders, std::vector<NodeId>{"a"});
}

TEST_F(WatchesTest, InAnOutageAWaitThatWasDroppedEntersNobodyLater) {
  ASSERT_TRUE(Join("b").ok());
  puller_ = "b";
  auto wait = Start(1, Seconds(600));
  scheduler_.RunFor(Seconds(1));
  caller_.cut = true;
  scheduler_.RunFor(Seconds(25));  // the poll has failed
  wait.reset();
  caller_.cut = false;
  EXPECT_TRUE(Announce("other", "b").ok()) << "whatever is asked next ends the session of before";
  Appear(1);
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(Delete("1")->holders, std::vector<NodeId>{"a"});
}

TEST_F(WatchesTest, AfterARestartOfTheServerEverythingIsWatchedAgain) {
  const auto waits = StartMany(2000, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  RestartServer();
  scheduler_.RunFor(Seconds(1));
  EXPECT_EQ(local_.waiting(), 2000u);
  RestartServer();
  const auto another = Start(3000, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  for (int i = 0; i < 2000; ++i) Appear(i);
  Appear(3000);
  scheduler_.RunFor(Seconds(1));
  for (const auto& wait : waits) EXPECT_TRUE(wait->result.ok()) << wait->result.status();
  EXPECT_TRUE(another->result.ok()) << another->result.status();
}

TEST_F(WatchesTest, AnOutageIsOutlastedAndAWaitThatEndsInItReportsIt) {
  const auto ends = Start(1, Seconds(30));
  const auto goes_on = Start(2, Seconds(60));
  scheduler_.RunFor(Seconds(1));
  caller_.cut = true;
  scheduler_.RunFor(Seconds(35));
  ASSERT_TRUE(ends->done);
  EXPECT_TRUE(absl::IsDeadlineExceeded(ends->result.status())) << ends->result.status();
  EXPECT_FALSE(goes_on->done);
  caller_.cut = false;
  Appear(2);
  scheduler_.RunFor(Seconds(23));
  EXPECT_TRUE(goes_on->result.ok());
}

TEST_F(WatchesTest, GarbledRepliesHarmNothingAndEveryWaitEnds) {
  base::Random random(3);
  caller_.garble = [&](FakeCaller::Bytes& reply) {
    if (!reply.empty() && random.Chance(0.5)) reply[random.Below(reply.size())] ^= 1 << random.Below(8);
    if (random.Chance(0.1)) reply.resize(random.Below(reply.size() + 1));
  };
  std::vector<std::shared_ptr<Wait>> waits;
  for (int i = 0; i < 500; ++i) {
    waits.push_back(Start(i, Milliseconds(static_cast<int64_t>(random.Below(3000)) + 1)));
    if (random.Chance(0.3)) waits[random.Below(waits.size())]->handle.reset();
    if (random.Chance(0.5)) Appear(static_cast<int>(random.Below(500)));
    scheduler_.RunFor(Milliseconds(5));
  }
  scheduler_.RunFor(Seconds(30));
  for (const auto& wait : waits) EXPECT_TRUE(wait->done || wait->handle == nullptr);
  scheduler_.RunFor(DirectoryServer::kSessionSilence);
  EXPECT_EQ(local_.waiting(), 0u);
}

TEST_F(WatchesTest, WaitsBeyondTheBoundAreRefused) {
  const auto waits = [this] {
    std::vector<std::shared_ptr<Wait>> all;
    for (size_t i = 0; i < kMaxWaitsOfPeer; ++i) all.push_back(Start(0, Seconds(10)));
    return all;
  }();
  const auto refused = Start(0, Seconds(10));
  scheduler_.RunFor(Seconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted(refused->result.status()));
  EXPECT_EQ(local_.waiting(), kMaxWaitsOfPeer);
}

}  // namespace
}  // namespace tokamak::directory

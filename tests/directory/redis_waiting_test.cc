// Waits for objects to appear in a Redis directory.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/directory/redis/waiting.h"
#include "tests/directory/redis_fixture.h"

namespace tokamak::directory::redis {
namespace {

TEST_F(RedisDirectoryTest, AWaiterIsAnsweredByARestartedServer) {
  const auto located = StartLocate(*directory_, "x", kPatience);
  ASSERT_TRUE(RunUntil([&] { return Channels() == 1; }));
  Restart();
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return located->answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(located->result.ok()) << located->result.status();
}

TEST_F(RedisDirectoryTest, AWaiterIsAnsweredThoughItsSubscriptionWasLost) {
  const auto located = StartLocate(*directory_, "x", kPatience);
  ASSERT_TRUE(RunUntil([&] { return Channels() == 1; }));
  ASSERT_TRUE(Join("a").ok());
  AskServer({"CLIENT", "KILL", "TYPE", "pubsub"});
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return located->answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(located->result.ok()) << located->result.status();
}

TEST_F(RedisDirectoryTest, AWaitingPullerIsEnteredAsComing) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  const auto watching = StartLocate(*directory_, "x", kPatience);
  const auto pulling = StartLocate(*directory_, "x", kPatience, "b");
  ASSERT_TRUE(RunUntil([&] { return Channels() == 1; }));
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return watching->answered && pulling->answered; }, loop_.Now() + kPatience));
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"a"});
  EXPECT_EQ(Delete("x")->holders, (Ids{"a", "b"}));
}

TEST_F(RedisDirectoryTest, AnOutageThatOutlastsTheWaitIsNoAnswer) {
  server_.Kill();
  const auto located = StartLocate(*directory_, "x", base::Milliseconds(50));
  EXPECT_TRUE(loop_.RunUntil([&] { return located->answered; }, loop_.Now() + kPatience));
  const absl::Status status = located->result.status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(server_.address()), std::string::npos) << status;
}

TEST_F(RedisDirectoryTest, NobodyStaysSubscribedWhenNobodyWaits) {
  const auto located = StartLocate(*directory_, "x", base::Seconds(1));
  EXPECT_TRUE(RunUntil([&] { return Channels() == 1; }));
  EXPECT_TRUE(loop_.RunUntil([&] { return located->answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(absl::IsNotFound(located->result.status())) << located->result.status();
  EXPECT_TRUE(RunUntil([&] { return Channels() == 0; }));
}

TEST_F(RedisDirectoryTest, ADroppedWaiterIsUnsubscribedAtOnce) {
  auto first = StartLocate(*directory_, "x", kLong);
  auto second = StartLocate(*directory_, "x", kLong, "a");
  auto other = StartLocate(*directory_, "y", kLong);
  ASSERT_TRUE(RunUntil([&] { return Channels() == 2; }));
  first.reset();
  EXPECT_EQ(directory_->waiting(), 2u);
  other.reset();
  EXPECT_TRUE(RunUntil([&] { return Channels() == 1; }));
  second.reset();
  EXPECT_EQ(directory_->waiting(), 0u);
  EXPECT_TRUE(RunUntil([&] { return Channels() == 0; }));
}

TEST_F(RedisDirectoryTest, WaitsBeyondTheBoundAreRefusedUntilOthersAreDropped) {
  std::vector<base::Pending> waits;
  const auto wait = [&](const std::string& object, Directory::LocateCallback done) {
    return directory_->Locate({base::ObjectId::FromName(object), kLong, kLong * 2, ""}, std::move(done));
  };
  for (size_t i = 0; i < Waiting::kMaxWaiting; ++i) {
    waits.push_back(wait(std::to_string(i % 2048), [](const absl::StatusOr<LocatedObject>&) {}));
  }
  const auto refused = StartLocate(*directory_, "x", kLong);
  EXPECT_TRUE(loop_.RunUntil([&] { return refused->answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(absl::IsResourceExhausted(refused->result.status())) << refused->result.status();
  waits.clear();
  const auto located = StartLocate(*directory_, "x", kPatience);
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return located->answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(located->result.ok()) << located->result.status();
}

TEST_F(RedisDirectoryTest, WaitersLeaveRoomForOtherCalls) {
  ASSERT_TRUE(Join("a").ok());
  server_.Freeze();
  std::vector<std::unique_ptr<Call<absl::StatusOr<LocatedObject>>>> waits;
  for (size_t i = 0; i < ServerConnection::kMaxPending + 1; ++i) {
    waits.push_back(StartLocate(*directory_, std::to_string(i), kLong));
  }
  const auto nodes =
      Start<absl::StatusOr<std::vector<NodeInfo>>>([&](auto done) { return directory_->Nodes(kPatience, done); });
  Pass(base::Milliseconds(5));
  server_.Thaw();
  EXPECT_TRUE(loop_.RunUntil([&] { return nodes->answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(nodes->result.ok()) << nodes->result.status();
  ASSERT_TRUE(Announce(Version(std::to_string(ServerConnection::kMaxPending)), "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return waits.back()->answered; }, loop_.Now() + kPatience));
}

TEST_F(RedisDirectoryTest, WaitsThatComeAndGoQuicklyConfuseNothing) {
  ASSERT_TRUE(Join("a").ok());
  int found = 0, ended = 0;
  std::vector<base::Pending> waits;
  const auto wait = [&](const std::string& object, base::Duration duration) {
    return directory_->Locate({base::ObjectId::FromName(object), duration, duration + kPatience, ""},
                              [&](const absl::StatusOr<LocatedObject>& info) {
                                ++ended;
                                found += info.ok();
                              });
  };
  for (int i = 0; i < 300; ++i) {
    for (const char* object : {"x", "y", "z"}) waits.push_back(wait(object, base::Microseconds(i * 20 + 1)));
    const auto dropped = wait("z", kPatience);
    Pass(base::Microseconds(i % 7 * 100));
  }
  waits.push_back(wait("z", kPatience));
  EXPECT_TRUE(loop_.RunUntil([&] { return ended == 900; }, loop_.Now() + kPatience));
  ASSERT_TRUE(Announce(Version("z"), "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return found == 1; }, loop_.Now() + kPatience));
  EXPECT_EQ(ended, 901);
}

TEST_F(RedisDirectoryTest, AnAnswerWhoseHandleWasDroppedDoesNotCome) {
  ASSERT_TRUE(Join("a").ok());
  bool answered = false;
  for (int i = 0; i < 20; ++i) {
    base::Pending dropped = directory_->Nodes(kPatience, [&](const auto&) { answered = true; });
    Pass(base::Microseconds(20 * i));
    if (answered) break;
    dropped.reset();
    ASSERT_TRUE(Nodes(*directory_).ok());
    EXPECT_FALSE(answered);
  }
}

// --- What is kept ---

}  // namespace
}  // namespace tokamak::directory::redis

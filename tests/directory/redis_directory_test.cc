// What only the Redis directory promises; what all directories promise is in conformance/.
#include "lib/directory/redis/redis_directory.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "tests/directory/redis_server.h"

namespace tokamak::directory::redis {
namespace {

constexpr base::Duration kPatience = base::Seconds(30);
constexpr base::Duration kLease = base::Seconds(3600);

class RedisDirectoryTest : public testing::Test {
 protected:
  RedisDirectoryTest() { AwaitServer(); }

  std::unique_ptr<RedisDirectory> Open(const std::string& prefix = "tokamak") {
    Options options;
    options.connection.address = server_.address();
    options.prefix = prefix;
    auto directory = RedisDirectory::Open(loop_, options);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return directory.ok() ? *std::move(directory) : nullptr;
  }
  std::unique_ptr<Connection> OpenConnection() {
    ConnectionOptions options;
    options.address = server_.address();
    auto connection = *Connection::Open(loop_, options, [] {});
    connection->Start();
    return connection;
  }
  void AwaitServer() {
    const base::Time limit = loop_.Now() + kPatience;
    while (!Nodes(*directory_).ok() && loop_.Now() < limit) Pass(base::Milliseconds(1));
  }

  // Runs one call to its end.
  template <typename T>
  T Run(const std::function<void(std::function<void(T)>)>& call) {
    auto result = std::make_shared<T>(absl::InternalError("no answer"));
    auto answered = std::make_shared<bool>(false);
    call([result, answered](T value) {
      *result = std::move(value);
      *answered = true;
    });
    loop_.RunUntil([&] { return *answered; }, loop_.Now() + kPatience);
    return *result;
  }
  absl::StatusOr<JoinResult> Join(Directory& directory, const NodeId& id, uint64_t incarnation = 1,
                                  base::Duration lease = kLease) {
    return Run<absl::StatusOr<JoinResult>>([&](auto done) {
      directory.Join({id, incarnation, {"10.0.0.1:7000"}, "soft", 1}, lease, kPatience, done);
    });
  }
  absl::Status Announce(Directory& directory, const std::string& object, const NodeId& node) {
    return Run<absl::Status>(
        [&](auto done) { directory.Announce(base::ObjectId::FromName(object), 1, 2, node, kPatience, done); });
  }
  absl::StatusOr<ObjectInfo> Locate(Directory& directory, const std::string& object, base::Duration wait = {}) {
    return Run<absl::StatusOr<ObjectInfo>>(
        [&](auto done) { directory.Locate(base::ObjectId::FromName(object), wait, kPatience, done); });
  }
  absl::StatusOr<std::vector<NodeInfo>> Nodes(Directory& directory) {
    return Run<absl::StatusOr<std::vector<NodeInfo>>>([&](auto done) { directory.Nodes(kPatience, done); });
  }
  Reply Ask(Connection& connection, const std::vector<std::string>& command) {
    return Run<absl::StatusOr<Reply>>([&](auto done) { connection.Call(command, kPatience, done); }).value_or(Reply());
  }
  void Pass(base::Duration duration) {
    loop_.RunUntil([] { return false; }, loop_.Now() + duration);
  }

  os::EpollLoop loop_;
  RedisServer server_;
  std::unique_ptr<RedisDirectory> directory_ = Open();
};

TEST_F(RedisDirectoryTest, AddressAndPrefixAreChecked) {
  Options options;
  options.connection.address = "redis.example.com:6379";
  EXPECT_TRUE(absl::IsInvalidArgument(RedisDirectory::Open(loop_, options).status()));
  options.connection.address = server_.address();
  options.prefix = "";
  EXPECT_TRUE(absl::IsInvalidArgument(RedisDirectory::Open(loop_, options).status()));
}

TEST_F(RedisDirectoryTest, ClustersWithOtherPrefixesDoNotSeeEachOther) {
  const auto other = Open("other");
  ASSERT_TRUE(Join(*directory_, "a").ok());
  ASSERT_TRUE(Announce(*directory_, "x", "a").ok());
  EXPECT_TRUE(Nodes(*other)->empty());
  EXPECT_TRUE(absl::IsNotFound(Locate(*other, "x").status()));
  EXPECT_EQ(*Join(*other, "a"), JoinResult::kEntered);
}

TEST_F(RedisDirectoryTest, AServerThatComesBackFromASnapshotIsToldEverythingAgain) {
  ASSERT_TRUE(Join(*directory_, "a").ok());
  const auto connection = OpenConnection();
  Ask(*connection, {"SAVE"});
  ASSERT_TRUE(Announce(*directory_, "x", "a").ok());
  EXPECT_EQ(*Join(*directory_, "a"), JoinResult::kRenewed);
  server_.Kill();
  server_.Start();
  AwaitServer();
  EXPECT_EQ(Nodes(*directory_)->size(), 1u);  // the lease is still there, the announcement is not
  EXPECT_TRUE(absl::IsNotFound(Locate(*directory_, "x").status()));
  EXPECT_EQ(*Join(*directory_, "a"), JoinResult::kEntered);
  EXPECT_EQ(*Join(*directory_, "a"), JoinResult::kRenewed);
}

TEST_F(RedisDirectoryTest, AConnectionThatWasLostWithoutARestartLosesNothing) {
  ASSERT_TRUE(Join(*directory_, "a").ok());
  const uint64_t before = directory_->connection_attempts();
  const auto connection = OpenConnection();
  Ask(*connection, {"CLIENT", "KILL", "TYPE", "normal"});
  const base::Time limit = loop_.Now() + kPatience;
  while (!Nodes(*directory_).ok() && loop_.Now() < limit) Pass(base::Milliseconds(1));
  EXPECT_EQ(directory_->connection_attempts(), before + 1);
  EXPECT_EQ(*Join(*directory_, "a"), JoinResult::kRenewed);
}

TEST_F(RedisDirectoryTest, WhoWaitsIsToldAlsoByAServerThatWasRestarted) {
  bool found = false;
  directory_->Locate(base::ObjectId::FromName("x"), kPatience, kPatience * 2,
                     [&](const absl::StatusOr<ObjectInfo>& info) { found = info.ok(); });
  Pass(base::Milliseconds(20));
  server_.Kill();
  Pass(base::Milliseconds(20));
  server_.Start();
  AwaitServer();
  const auto other = Open();
  AwaitServer();
  ASSERT_TRUE(Join(*directory_, "a").ok());
  ASSERT_TRUE(Announce(*directory_, "x", "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return found; }, loop_.Now() + kPatience));
}

TEST_F(RedisDirectoryTest, WhoWaitsIsToldAlsoWhenItsSubscriptionWasLost) {
  bool found = false;
  directory_->Locate(base::ObjectId::FromName("x"), kPatience, kPatience * 2,
                     [&](const absl::StatusOr<ObjectInfo>& info) { found = info.ok(); });
  Pass(base::Milliseconds(20));
  const auto connection = OpenConnection();
  ASSERT_TRUE(Join(*directory_, "a").ok());
  Ask(*connection, {"CLIENT", "KILL", "TYPE", "pubsub"});
  ASSERT_TRUE(Announce(*directory_, "x", "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return found; }, loop_.Now() + kPatience));
}

TEST_F(RedisDirectoryTest, AnOutageThatOutlastsTheWaitIsNoAnswer) {
  server_.Kill();
  const absl::Status status = Locate(*directory_, "x", base::Milliseconds(50)).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(server_.address()), std::string::npos) << status;
}

TEST_F(RedisDirectoryTest, NobodyStaysSubscribedWhenNobodyWaits) {
  const auto connection = OpenConnection();
  bool ended = false;
  directory_->Locate(base::ObjectId::FromName("x"), base::Milliseconds(30), kPatience,
                     [&](const absl::StatusOr<ObjectInfo>&) { ended = true; });
  const auto channels = [&] { return Ask(*connection, {"PUBSUB", "CHANNELS", "tokamak:announced:*"}).elements.size(); };
  bool subscribed = false;
  while (!ended) subscribed |= channels() == 1;
  EXPECT_TRUE(subscribed);
  const base::Time limit = loop_.Now() + kPatience;
  while (channels() != 0 && loop_.Now() < limit) Pass(base::Milliseconds(1));
  EXPECT_EQ(channels(), 0u);
}

TEST_F(RedisDirectoryTest, WaitsThatComeAndGoQuicklyConfuseNothing) {
  ASSERT_TRUE(Join(*directory_, "a").ok());
  int found = 0, ended = 0;
  const auto count = [&](const absl::StatusOr<ObjectInfo>& info) {
    ++ended;
    found += info.ok();
  };
  for (int i = 0; i < 300; ++i) {
    for (const char* name : {"x", "y", "z"}) {
      directory_->Locate(base::ObjectId::FromName(name), base::Microseconds(i * 20 + 1), kPatience, count);
    }
    Pass(base::Microseconds(i % 7 * 100));
  }
  directory_->Locate(base::ObjectId::FromName("z"), kPatience, kPatience * 2, count);
  EXPECT_TRUE(loop_.RunUntil([&] { return ended == 900; }, loop_.Now() + kPatience));
  ASSERT_TRUE(Announce(*directory_, "z", "a").ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return found == 1; }, loop_.Now() + kPatience));
  EXPECT_EQ(ended, 901);
}

TEST_F(RedisDirectoryTest, WhatEndedLivesHeldIsCleanedStepByStep) {
  const auto connection = OpenConnection();
  ASSERT_TRUE(Join(*directory_, "a").ok());
  ASSERT_TRUE(Join(*directory_, "b").ok());
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(Announce(*directory_, std::to_string(i), "a").ok());
  ASSERT_TRUE(Announce(*directory_, "0", "b").ok());
  const auto objects = [&] { return Ask(*connection, {"KEYS", "tokamak:object:*"}).elements.size(); };
  ASSERT_TRUE(Join(*directory_, "a", 1, base::Milliseconds(1)).ok());
  Pass(base::Milliseconds(20));
  EXPECT_EQ(objects(), 600u);
  size_t before = 600;
  for (int i = 0; i < 20 && before > 1; ++i) {
    ASSERT_TRUE(Join(*directory_, "b").ok());
    const size_t now = objects();
    EXPECT_LE(before - now, 256u);
    before = now;
  }
  EXPECT_EQ(before, 1u);
  EXPECT_EQ(Locate(*directory_, "0")->holders, std::vector<NodeId>{"b"});
  EXPECT_TRUE(Ask(*connection, {"KEYS", "tokamak:held:a:*"}).elements.empty());
  ASSERT_TRUE(Join(*directory_, "b").ok());
  EXPECT_EQ(Ask(*connection, {"SCARD", "tokamak:ended"}).integer, 0);
  EXPECT_EQ(Ask(*connection, {"SCARD", "tokamak:nodes"}).integer, 1);
}

TEST_F(RedisDirectoryTest, CleaningAfterAnEarlierLifeSparesWhatALaterOneHolds) {
  ASSERT_TRUE(Join(*directory_, "a", 1).ok());
  ASSERT_TRUE(Announce(*directory_, "x", "a").ok());
  ASSERT_TRUE(Announce(*directory_, "y", "a").ok());
  ASSERT_TRUE(Join(*directory_, "a", 2).ok());
  ASSERT_TRUE(Announce(*directory_, "x", "a").ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Join(*directory_, "a", 2).ok());
  EXPECT_EQ(Locate(*directory_, "x")->holders, std::vector<NodeId>{"a"});
  EXPECT_TRUE(absl::IsNotFound(Locate(*directory_, "y").status()));
}

TEST_F(RedisDirectoryTest, ForeignKeysAreAnErrorAndNoCrash) {
  const auto connection = OpenConnection();
  ASSERT_TRUE(Join(*directory_, "a").ok());
  Ask(*connection, {"HSET", "tokamak:node:a", "capacity", "much"});
  EXPECT_TRUE(absl::IsUnavailable(Nodes(*directory_).status()));
  Ask(*connection, {"SET", "tokamak:object:" + base::ObjectId::FromName("x").ToHex(), "text"});
  EXPECT_TRUE(absl::IsUnavailable(Locate(*directory_, "x").status()));
}

}  // namespace
}  // namespace tokamak::directory::redis

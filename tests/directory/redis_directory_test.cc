// Promises of the Redis directory alone; the promises of all directories are in conformance/.
#include "lib/directory/redis/redis_directory.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/directory/redis_fixture.h"

namespace tokamak::directory::redis {
namespace {

TEST_F(RedisDirectoryTest, ThePrefixIsChecked) {
  Options options;
  options.target = server_.target();
  options.prefix = "";
  EXPECT_TRUE(absl::IsInvalidArgument(RedisDirectory::Open(loop_, options).status()));
}

// The node "server" of the cluster "tokamak" has the key tokamak:node:server, and so would
// "tokamak:node" itself.
TEST_F(RedisDirectoryTest, NoPrefixIsTheBeginningOfAnothersKeys) {
  Options options;
  options.target = server_.target();
  for (const char* prefix : {"tokamak:node", "a:b", ":", "a:"}) {
    options.prefix = prefix;
    EXPECT_TRUE(absl::IsInvalidArgument(RedisDirectory::Open(loop_, options).status())) << prefix;
  }
}

TEST_F(RedisDirectoryTest, ClustersWithOtherPrefixesDoNotSeeEachOther) {
  const auto other = OpenPrefix("other");
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  RunUntil([&] { return Nodes(*other).ok(); });
  EXPECT_TRUE(Nodes(*other)->empty());
  EXPECT_TRUE(Join(*other, Request("a"))->entered);
}

// --- Restarts of the server ---

TEST_F(RedisDirectoryTest, AServerRestartedEmptyLearnsEverythingAgain) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  Restart();
  EXPECT_TRUE(absl::IsNotFound(Announce(Version("x"), "a", true)));
  EXPECT_TRUE(Return("a", false)->entered);
  EXPECT_FALSE(Return("a", false)->entered);
  ASSERT_TRUE(Announce(Version("x"), "a", true).ok());
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"a"});
}

TEST_F(RedisDirectoryTest, AServerRestoredFromASnapshotLearnsEverythingAgain) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  AskServer({"SAVE"});
  ASSERT_TRUE(Withdraw(Version("x"), "a").ok());
  ASSERT_TRUE(Announce(Version("y"), "a").ok());
  Restart();
  EXPECT_TRUE(IsAlive("a"));  // as the snapshot says
  EXPECT_TRUE(Return("a", false)->entered);
  EXPECT_EQ(Holders("x"), std::set<NodeId>());  // what the snapshot says of it counts no more
  ASSERT_TRUE(Announce(Version("y"), "a", true).ok());
  EXPECT_EQ(Holders("y"), std::set<NodeId>{"a"});
  EXPECT_FALSE(Return("a", true)->entered);
  EXPECT_EQ(Holders("y"), std::set<NodeId>{"a"});
}

TEST_F(RedisDirectoryTest, ASnapshotsEntriesOfANodeCountUntilItJoinsAgain) {
  const auto other = Open();
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join(*other, Request("b")).ok());
  ASSERT_TRUE(Announce(Version("x"), "b").ok());
  AskServer({"SAVE"});
  Restart();
  ASSERT_TRUE(Return("a", true)->entered);
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"b"});
  EXPECT_TRUE(absl::IsAlreadyExists(Announce(Version("x", 2), "a")));
  ASSERT_TRUE(Return("b", true)->entered);
  EXPECT_EQ(Holders("x"), std::set<NodeId>());
}

TEST_F(RedisDirectoryTest, ARestartedServerDeletesNothingOlderUntilItHasLearnedTheHolders) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  Restart();
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));  // nobody has joined
  ASSERT_TRUE(Return("a", true).ok());
  ASSERT_TRUE(Announce(Version("x"), "a", true).ok());
  ASSERT_TRUE(Announce(Version("new"), "a").ok());
  EXPECT_EQ(Delete("new")->holders, Ids{"a"});  // no server before this one can have known it
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));
  EXPECT_TRUE(absl::IsUnavailable(Delete("unknown").status()));
  AskServer({"DEL", "tokamak:recovery"});  // the time is over
  EXPECT_EQ(Delete("x")->holders, Ids{"a"});
  EXPECT_TRUE(absl::IsNotFound(Delete("unknown").status()));
}

TEST_F(RedisDirectoryTest, ASnapshotAloneDeletesNothing) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  AskServer({"SAVE"});
  Restart();
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));
  ASSERT_TRUE(Join("b").ok());  // not one that returns, but the snapshot names one that may
  EXPECT_TRUE(absl::IsUnavailable(Delete("x").status()));
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"a"});
}

TEST_F(RedisDirectoryTest, ADeletionOfASnapshotEndsWhenTheHolderDropsTheObject) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  ASSERT_TRUE(Delete("x").ok());
  AskServer({"SAVE"});
  Restart();
  DeleteRequest request;
  request.id = Version("x").id;
  request.generation = Version("x").generation;
  EXPECT_EQ(Delete(request)->holders, Ids{"a"});
  const auto joined = Return("a", false);
  EXPECT_TRUE(joined->entered);
  EXPECT_EQ(joined->drops, std::vector<base::ObjectVersion>{Version("x")});
  EXPECT_EQ(Delete(request)->holders, Ids{"a"});
  EXPECT_TRUE(absl::IsAborted(Announce(Version("x"), "a", true)));
  ASSERT_TRUE(Withdraw(Version("x"), "a").ok());
  EXPECT_TRUE(Delete(request)->holders.empty());
  EXPECT_TRUE(Keys("tokamak:drops:*").empty());
  EXPECT_TRUE(Keys("tokamak:deleting:*").empty());
}

TEST_F(RedisDirectoryTest, TheReportedTimeToLearnIsNeverTooLong) {
  ASSERT_TRUE(Join("a").ok());
  AskServer({"ZADD", "tokamak:recovery", "9000000000000000", "*begun"});  // by a clock that jumped
  const absl::Status why = Delete("x").status();
  EXPECT_TRUE(absl::IsUnavailable(why)) << why;
  EXPECT_EQ(why.message(), "the directory began 0.0 s ago and is learning who holds what: try again in 10.0 s");
}

TEST_F(RedisDirectoryTest, OlderContentsDisplaceNewOnesAfterARestart) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x", 1), "a").ok());
  Restart();
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce(Version("x", 2), "b").ok());
  ASSERT_TRUE(Return("a", false).ok());
  ASSERT_TRUE(Announce(Version("x", 1), "a", true).ok());
  EXPECT_EQ(Locate("x")->generation, base::Generation{1});
  EXPECT_TRUE(absl::IsAborted(Announce(Version("x", 2), "b")));
  EXPECT_EQ(Join("b")->drops, std::vector<base::ObjectVersion>{Version("x", 2)});
  ASSERT_TRUE(Withdraw(Version("x", 2), "b").ok());
  EXPECT_TRUE(Join("b")->drops.empty());
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"a"});
}

TEST_F(RedisDirectoryTest, AConnectionThatWasLostWithoutARestartLosesNothing) {
  ASSERT_TRUE(Join("a").ok());
  const uint64_t before = directory_->connection_attempts();
  AskServer({"CLIENT", "KILL", "TYPE", "normal"});
  AwaitServer();
  EXPECT_EQ(directory_->connection_attempts(), before + 1);
  EXPECT_FALSE(Join("a")->entered);
}

TEST_F(RedisDirectoryTest, AServerThatForgetsItsScriptsGetsThemAgain) {
  ASSERT_TRUE(Join("a").ok());
  AskServer({"SCRIPT", "FLUSH"});
  const absl::Status first = Join("a").status();
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  EXPECT_TRUE(Join("a").ok());
  EXPECT_TRUE(absl::IsUnavailable(Announce(Version("x"), "a")));
  EXPECT_TRUE(Announce(Version("x"), "a").ok());
}

// --- Keys that are lost ---

TEST_F(RedisDirectoryTest, VerifyFindsEntriesThatTheServerLost) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  for (const char* object : {"x", "y", "z"}) ASSERT_TRUE(Announce(Version(object), "a").ok());
  ASSERT_TRUE(Announce(Version("x"), "b").ok());
  const std::vector<base::ObjectVersion> held = {Version("x"), Version("y"), Version("z"), Version("y", 2)};
  EXPECT_EQ(*Verify("a", held), Places{3});
  AskServer({"DEL", "tokamak:object:" + Version("y").id.ToHex()});
  EXPECT_EQ(*Verify("a", held), (Places{1, 3}));
  ASSERT_TRUE(Announce(Version("y"), "a", true).ok());
  EXPECT_EQ(*Verify("a", held), Places{3});
  EXPECT_EQ(*Verify("b", held), (Places{1, 2, 3}));
  EXPECT_TRUE(absl::IsNotFound(Verify("c", held).status()));
}

TEST_F(RedisDirectoryTest, HeldNamesNothingThatIsLostAndGoesOnInTheSameLifeOnly) {
  ASSERT_TRUE(Join("a").ok());
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(Announce(Version(std::to_string(i)), "a").ok());
  const auto first = Held("a");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_FALSE(first->next.empty());
  ASSERT_TRUE(Join("a", 2).ok());
  for (const char* object : {"x", "y"}) ASSERT_TRUE(Announce(Version(object), "a").ok());
  AskServer({"DEL", "tokamak:object:" + Version("y").id.ToHex()});
  for (const std::string& after : {std::string(), first->next, std::string("no place")}) {
    const auto held = Held("a", after);
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_EQ(held->versions, std::vector<base::ObjectVersion>{Version("x")}) << after;
    EXPECT_EQ(held->next, "");
  }
}

// Returns the place in a key of a life (":EPOCH:NODE", of 16 digits).
size_t FindLife(const std::string& key) {
  for (size_t at = key.find(':'); at != std::string::npos; at = key.find(':', at + 1)) {
    const size_t digits = key.find_first_not_of("0123456789", at + 1);
    if (digits == at + 17 && key[digits] == ':') return at;
  }
  return std::string::npos;
}

// Each key in turn is lost; every node joins, verifies and announces what was lost. Then all is as
// it was.
TEST_F(RedisDirectoryTest, AnswersAreRightOnceAllHaveVerifiedWhateverKeyWasLost) {
  const auto set_up = [&] {
    for (const char* node : {"a", "b", "c"}) ASSERT_TRUE(Join(node).ok());
    for (const char* node : {"a", "b"}) ASSERT_TRUE(Announce(Version("x"), node, true).ok());
    for (const char* node : {"a", "b"}) ASSERT_TRUE(Announce(Version("deleted"), node).ok());
    ASSERT_TRUE(Locate("x", "c").ok());  // c is coming
    ASSERT_TRUE(Delete("deleted").ok());
  };
  set_up();
  const std::vector<std::string> keys = Keys("*");
  ASSERT_GE(keys.size(), 14u);
  AskServer({"FLUSHALL"});
  for (std::string key : keys) {
    SCOPED_TRACE(key);
    set_up();
    // Lives have other numbers each time.
    if (const size_t life = FindLife(key); life != std::string::npos) {
      const std::vector<std::string> now = Keys(key.substr(0, life) + ":*" + key.substr(key.size() - 2));
      ASSERT_EQ(now.size(), 1u);
      key = now.front();
    }
    ASSERT_EQ(AskServer({"DEL", key}).integer, 1);
    for (const char* node : {"a", "b", "c"}) {
      const absl::StatusOr<JoinReply> joined = Return(node, true);
      ASSERT_TRUE(joined.ok());
      for (const base::ObjectVersion& drop : joined->drops) EXPECT_TRUE(Withdraw(drop, node).ok());
    }
    for (const char* node : {"a", "b"}) {
      const auto lost = Verify(node, {Version("x")});
      ASSERT_TRUE(lost.ok());
      if (!lost->empty()) {
        EXPECT_TRUE(Announce(Version("x"), node, true).ok());
      }
      // A node that was not asked to drop its copy finds that it is not known to hold it.
      const absl::Status again = Announce(Version("deleted"), node);
      EXPECT_TRUE(absl::IsAborted(again) || key == "tokamak:tombstones" || key.find(":deleting:") != std::string::npos);
      (void)Withdraw(Version("deleted"), node);
    }
    EXPECT_EQ(Holders("x"), (std::set<NodeId>{"a", "b"}));
    EXPECT_EQ(Nodes(*directory_)->size(), 3u);
    EXPECT_EQ(Holders("deleted"), std::set<NodeId>());
    AskServer({"DEL", "tokamak:recovery"});
    DeleteRequest request;
    request.id = Version("x").id;
    request.generation = Version("x").generation;
    absl::StatusOr<DeleteReply> deleted = Delete(request);
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    request.dropped = {"a", "b", "c"};
    deleted = Delete(request);
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    EXPECT_TRUE(deleted->holders.empty());
    EXPECT_TRUE(deleted->silent.empty());
    EXPECT_TRUE(Announce(Version("x", 2), "c").ok());
    AskServer({"FLUSHALL"});
  }
}

TEST_F(RedisDirectoryTest, ForeignKeysAreAnErrorThatNamesThemAndNoCrash) {
  ASSERT_TRUE(Join("a").ok());
  const std::string key = "tokamak:object:" + Version("x").id.ToHex();
  const auto names_it = [&key](const absl::Status& status) {
    return absl::IsUnavailable(status) && absl::StrContains(status.message(), key) &&
           absl::StrContains(status.message(), "redis-cli DEL");
  };
  AskServer({"SET", key, "text"});
  EXPECT_PRED1(names_it, Locate("x").status());
  EXPECT_PRED1(names_it, Announce(Version("x"), "a"));
  AskServer({"DEL", key});
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  AskServer({"HSET", key, "d", "-5"});
  EXPECT_PRED1(names_it, Locate("x").status());
}

TEST_F(RedisDirectoryTest, AForeignEntryOfANodeHidesThatNodeOnlyUntilItRenewsItsLease) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  const auto names = [this] {
    std::string all;
    const auto nodes = Nodes(*directory_);
    EXPECT_TRUE(nodes.ok()) << nodes.status();
    for (const NodeInfo& node : nodes.value_or(std::vector<NodeInfo>())) all += node.id;
    return all;
  };
  AskServer({"HSET", "tokamak:node:a", "capacity", "much"});
  EXPECT_EQ(names(), "b");
  ASSERT_TRUE(Join("a").ok());
  EXPECT_EQ(names(), "ab");
  AskServer({"DEL", "tokamak:alive:a"});
  AskServer({"RPUSH", "tokamak:alive:a", "x"});
  EXPECT_EQ(names(), "b");
  ASSERT_TRUE(Join("a").ok());
  EXPECT_EQ(names(), "ab");
  AskServer({"SET", "tokamak:node:a", "x"});
  EXPECT_EQ(names(), "b");
  const absl::Status status = Join("a").status();
  EXPECT_TRUE(absl::StrContains(status.message(), "tokamak:node:a")) << status;
}

TEST_F(RedisDirectoryTest, AForeignMemberOfItsDropsKeepsNoNodeFromItsLease) {
  ASSERT_TRUE(Join("a").ok());
  const std::string drops = "tokamak:drops:" + AskServer({"SMEMBERS", "tokamak:lives"}).elements.front().text;
  AskServer({"SADD", drops, "poison", "ab:cd", ":"});
  EXPECT_TRUE(Join("a").ok());
  EXPECT_EQ(AskServer({"EXISTS", drops}).integer, 0) << "they are gone";
  // Entry of a life that has ended as well: any cleaner goes on after it.
  AskServer({"SADD", "tokamak:ended", "1:gone"});
  AskServer({"SADD", "tokamak:drops:1:gone", "poison", "ab:cd"});
  EXPECT_TRUE(Join("a").ok());
  EXPECT_EQ(AskServer({"EXISTS", "tokamak:drops:1:gone"}).integer, 0);
}

// --- Leases ---

TEST_F(RedisDirectoryTest, AnObjectOfASilentNodeKeepsItsIdUntilTheNodeIsGone) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  LetFallSilent("a");
  EXPECT_EQ(Holders("x"), std::set<NodeId>());
  EXPECT_TRUE(absl::IsNotFound(Announce(Version("y"), "a")));
  EXPECT_TRUE(absl::IsAlreadyExists(Announce(Version("x", 2), "b")));
  const auto deleted = Delete("x");
  EXPECT_EQ(deleted->holders, Ids());
  EXPECT_EQ(deleted->silent, Ids{"a"});
  EXPECT_TRUE(absl::IsAlreadyExists(Announce(Version("x", 2), "b")));
  AskServer({"PEXPIRE", "tokamak:node:a", "1"});  // its grace
  EXPECT_TRUE(RunUntil([&] { return Announce(Version("x", 2), "b").ok(); }));
}

TEST_F(RedisDirectoryTest, ANodeThatReturnsWithinItsGraceLearnsOfDeletions) {
  AskServer({"FLUSHALL"});  // nobody has met it yet
  directory_ = OpenRecovery(base::Milliseconds(1));
  AwaitServer();
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  ASSERT_TRUE(Announce(Version("y"), "a").ok());
  LetFallSilent("a");
  ASSERT_EQ(Delete("x")->silent, Ids{"a"});
  const auto back = Return("a", true);
  EXPECT_FALSE(back->entered);
  EXPECT_EQ(back->drops, std::vector<base::ObjectVersion>{Version("x")});
  EXPECT_EQ(Holders("y"), std::set<NodeId>{"a"});
  ASSERT_TRUE(Withdraw(Version("x"), "a").ok());
  ASSERT_TRUE(Return("a", true).ok());
  EXPECT_TRUE(absl::IsNotFound(Delete("x").status()));
  EXPECT_TRUE(absl::IsAborted(Announce(Version("x"), "a", true)));
}

TEST_F(RedisDirectoryTest, DropsBeyondOneAnswerAreAllNamed) {
  ASSERT_TRUE(Join("a").ok());
  std::set<base::ObjectVersion> untold;
  for (int i = 0; i < 100; ++i) {
    const base::ObjectVersion version = Version(std::to_string(i), 7);
    ASSERT_TRUE(Announce(version, "a").ok());
    ASSERT_TRUE(Delete(std::to_string(i)).ok());
    untold.insert(version);
  }
  for (int i = 0; i < 2; ++i) {
    const auto joined = Join("a");
    EXPECT_LE(joined->drops.size(), kMaxDropsTold);
    for (const base::ObjectVersion& drop : joined->drops) {
      EXPECT_EQ(untold.erase(drop), 1u);
      ASSERT_TRUE(Withdraw(drop, "a").ok());
    }
  }
  EXPECT_TRUE(untold.empty());
  EXPECT_TRUE(Join("a")->drops.empty());
  EXPECT_TRUE(Keys("tokamak:de*").empty());
  EXPECT_TRUE(Keys("tokamak:drops:*").empty());
}

TEST_F(RedisDirectoryTest, AnEarlierLifeThatIsSilentElsewhereCountsUntilItsGraceIsOver) {
  ASSERT_TRUE(Join("a", 1).ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  JoinRequest elsewhere = Request("a", 2);
  elsewhere.node.engines = {"10.0.0.9:7000"};
  EXPECT_TRUE(absl::IsAlreadyExists(Join(*directory_, elsewhere).status()));
  LetFallSilent("a");
  ASSERT_TRUE(Join(*directory_, elsewhere)->entered);
  EXPECT_EQ(Delete("x")->silent, Ids{"a"});
  EXPECT_TRUE(absl::IsFailedPrecondition(Join("a", 1).status()));
  EXPECT_TRUE(Join(*directory_, elsewhere)->drops.empty());
  const std::string former = Keys("tokamak:former:*").front();
  EXPECT_GT(AskServer({"PTTL", former}).integer, 0);
  EXPECT_LE(AskServer({"PTTL", former}).integer, kLong.milliseconds());
  AskServer({"PEXPIRE", former, "1"});
  EXPECT_TRUE(RunUntil([&] { return Announce(Version("x", 2), "b").ok(); }));
}

TEST_F(RedisDirectoryTest, AWaiterHearsOfAReturningHolder) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  LetFallSilent("a");
  const auto located = StartLocate(*directory_, "x", kPatience);
  ASSERT_TRUE(RunUntil([&] { return Channels() == 1; }));
  EXPECT_FALSE(located->answered);
  const base::Time back = loop_.Now();
  ASSERT_FALSE(Return("a", true)->entered);
  EXPECT_TRUE(loop_.RunUntil([&] { return located->answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(located->result.ok()) << located->result.status();
  EXPECT_LT(loop_.Now() - back, base::Seconds(20));  // not by asking from time to time
}

// --- Holders ---

TEST_F(RedisDirectoryTest, AllOfManyHoldersAreNamedInTurnAndDropTheObject) {
  Ids all;
  for (int i = 0; i < 68; ++i) {
    all.push_back("n" + std::to_string(100 + i));
    ASSERT_TRUE(Join(all.back()).ok());
    ASSERT_TRUE(Announce(Version("x"), all.back()).ok());
  }
  std::set<NodeId> named;
  const auto name_more = [&] {
    const auto info = Locate("x");
    EXPECT_EQ(info->holders.size(), kMaxHoldersNamed);
    named.insert(info->holders.begin(), info->holders.end());
    return named.size() == all.size();
  };
  EXPECT_TRUE(RunUntil(name_more));

  DeleteRequest request;
  request.id = Version("x").id;
  absl::StatusOr<DeleteReply> step = Delete(request);
  EXPECT_EQ(step->holders, Ids(all.begin(), all.begin() + kMaxHoldersNamed));
  request.generation = step->generation;
  request.dropped = step->holders;
  request.after = step->holders.back();
  step = Delete(request);
  EXPECT_EQ(step->holders, Ids(all.begin() + kMaxHoldersNamed, all.end()));
  request.dropped = {step->holders[0], step->holders[1]};  // the others are asked without success
  request.after = step->holders.back();
  EXPECT_TRUE(Delete(request)->holders.empty());
  request.after = "";
  request.dropped.clear();
  EXPECT_EQ(Delete(request)->holders, Ids(all.end() - 2, all.end()));
  EXPECT_TRUE(absl::IsAlreadyExists(Announce(Version("x", 2), all[0])));
  request.dropped = {all[66], all[67]};
  EXPECT_TRUE(Delete(request)->holders.empty());
  EXPECT_TRUE(Announce(Version("x", 2), all[0]).ok());
}

TEST_F(RedisDirectoryTest, OtherHoldersAreNamedWhenTheNamedOnesHaveEvicted) {
  for (int i = 0; i < 68; ++i) {
    ASSERT_TRUE(Join("n" + std::to_string(i)).ok());
    ASSERT_TRUE(Announce(Version("x"), "n" + std::to_string(i)).ok());
  }
  const Ids named = Locate("x")->holders;
  for (const NodeId& holder : named) ASSERT_TRUE(Withdraw(Version("x"), holder).ok());
  EXPECT_EQ(Holders("x").size(), 68 - kMaxHoldersNamed);
}

// Each id is announced by two nodes at once, with different contents: one wins, and the loser gets
// an error.
TEST_F(RedisDirectoryTest, OneOfTwoContentsAnnouncedAtOnceIsAccepted) {
  const auto other = Open();
  RunUntil([&] { return Nodes(*other).ok(); });
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  constexpr int kObjects = 200;
  std::vector<std::unique_ptr<Call<absl::StatusOr<UpdateStatuses>>>> a, b;
  for (int i = 0; i < kObjects; ++i) {
    a.push_back(StartUpdate(*directory_, "a", {Announcement(Version(std::to_string(i), 1))}));
    b.push_back(StartUpdate(*other, "b", {Announcement(Version(std::to_string(i), 2))}));
  }
  int refused = 0;
  for (int i = 0; i < kObjects; ++i) {
    ASSERT_TRUE(loop_.RunUntil([&] { return a[i]->answered && b[i]->answered; }, loop_.Now() + kPatience));
    const bool a_won = a[i]->result->front().ok();
    EXPECT_NE(a_won, b[i]->result->front().ok());
    refused += absl::IsAlreadyExists((a_won ? b : a)[i]->result->front());
    EXPECT_EQ(Locate(std::to_string(i))->generation, base::Generation{a_won ? 1u : 2u});
  }
  EXPECT_EQ(refused, kObjects);
}

TEST_F(RedisDirectoryTest, ADeletionThatRacesWithAnnouncementsHolds) {
  const auto other = Open();
  RunUntil([&] { return Nodes(*other).ok(); });
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  for (int i = 0; i < 100; ++i) {
    const std::string object = std::to_string(i);
    ASSERT_TRUE(Announce(Version(object), "a").ok());
    ASSERT_TRUE(Locate(object, "b").ok());
    const auto announced = StartUpdate(*other, "b", {Announcement(Version(object))});
    DeleteRequest request;
    request.id = Version(object).id;
    request.generation = Delete(request)->generation;
    EXPECT_EQ(Delete(request)->holders, (Ids{"a", "b"}));
    ASSERT_TRUE(loop_.RunUntil([&] { return announced->answered; }, loop_.Now() + kPatience));
    request.dropped = {"a", "b"};
    EXPECT_EQ(Delete(request)->holders, Ids());
    EXPECT_TRUE(absl::IsAborted(Announce(Version(object), "b")));
    EXPECT_EQ(Holders(object), std::set<NodeId>());
  }
}

// --- Waiting ---

TEST_F(RedisDirectoryTest, EntriesOfEndedLivesAreCleanedStepByStep) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(Announce(Version(std::to_string(i)), "a").ok());
  ASSERT_TRUE(Announce(Version("0"), "b").ok());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Announce(Version("deleted" + std::to_string(i)), "a").ok());
    ASSERT_TRUE(Delete("deleted" + std::to_string(i)).ok());
  }
  const auto objects = [&] { return Keys("tokamak:object:*").size(); };
  LetFallSilent("a", base::Milliseconds(1));
  ASSERT_TRUE(RunUntil([&] { return Keys("tokamak:node:a").empty(); }));
  size_t before = objects();
  EXPECT_EQ(before, 600u);
  for (int i = 0; i < 20 && before > 1; ++i) {
    ASSERT_TRUE(Join("b").ok());
    const size_t now = objects();
    EXPECT_LE(before - now, 256u);
    before = now;
  }
  EXPECT_EQ(before, 1u);
  EXPECT_EQ(Holders("0"), std::set<NodeId>{"b"});
  ASSERT_TRUE(Join("b").ok());
  EXPECT_TRUE(Keys("tokamak:held:*:a").empty());
  EXPECT_TRUE(Keys("tokamak:drops:*").empty());
  EXPECT_TRUE(Keys("tokamak:deleting:*").empty());
  EXPECT_EQ(AskServer({"SCARD", "tokamak:ended"}).integer, 0);
  EXPECT_EQ(AskServer({"SCARD", "tokamak:lives"}).integer, 1);
  EXPECT_EQ(AskServer({"ZCARD", "tokamak:tombstones"}).integer, 5);
}

TEST_F(RedisDirectoryTest, CleaningAfterAnEarlierLifeSparesALaterOne) {
  ASSERT_TRUE(Join("a", 1).ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  ASSERT_TRUE(Announce(Version("y"), "a").ok());
  ASSERT_TRUE(Join("a", 2).ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Join("a", 2).ok());
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"a"});
  EXPECT_TRUE(absl::IsNotFound(Locate("y").status()));
  EXPECT_EQ(Keys("tokamak:held:*").size(), 1u);
}

TEST_F(RedisDirectoryTest, ALifeThatLeavesIsCleanedUp) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  ASSERT_TRUE(Run<absl::Status>([&](auto done) { return directory_->Leave("a", 1, kPatience, done); }).ok());
  EXPECT_FALSE(IsAlive("a"));
  EXPECT_TRUE(Announce(Version("x", 2), "b").ok());
  ASSERT_TRUE(Join("b").ok());
  EXPECT_TRUE(Keys("tokamak:held:*:a").empty());
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"b"});
}

TEST_F(RedisDirectoryTest, OnlyTheLatestDeletionsAreRemembered) {
  ASSERT_TRUE(Join("a").ok());
  const std::string fill = "for i = 1, " + std::to_string(kMaxTombstones) +
                           " do redis.call('ZADD', 'tokamak:tombstones', i, 'earlier' .. i) end";
  AskServer({"EVAL", fill, "0"});
  AskServer({"DEL", "tokamak:recovery"});  // its time to learn is over
  DeleteRequest request;
  request.id = Version("x").id;
  request.generation = Version("x").generation;
  ASSERT_TRUE(Delete(request)->holders.empty());  // of what was not announced yet
  EXPECT_TRUE(absl::IsAborted(Announce(Version("x"), "a")));
  EXPECT_EQ(AskServer({"ZCARD", "tokamak:tombstones"}).integer, static_cast<int64_t>(kMaxTombstones));
  EXPECT_EQ(AskServer({"ZSCORE", "tokamak:tombstones", "earlier1"}).kind, Reply::Kind::kNil);
  EXPECT_EQ(AskServer({"GET", "tokamak:forgotten"}).text, "1") << "the moment of the newest that is forgotten";
}

class FullRedisDirectoryTest : public RedisDirectoryTest {
 protected:
  FullRedisDirectoryTest() : RedisDirectoryTest({"--maxmemory-policy", "noeviction"}) {}
};

TEST_F(FullRedisDirectoryTest, AServerWithoutMemoryRefusesAnnouncementsOnly) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Join("b").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  AskServer({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_TRUE(absl::IsResourceExhausted(Announce(Version("y"), "a")));
  EXPECT_TRUE(absl::IsResourceExhausted(Announce(Version("x"), "b")));
  EXPECT_FALSE(Join("a")->entered);
  EXPECT_TRUE(Locate("x", "b").ok());
  const auto deleted = Delete("x");
  EXPECT_EQ(deleted->holders, (Ids{"a", "b"}));
  EXPECT_TRUE(Withdraw(Version("x"), "a").ok());
  EXPECT_TRUE(Withdraw(Version("x"), "b").ok());
  AskServer({"DEL", "tokamak:recovery"});  // its time to learn is over
  EXPECT_TRUE(absl::IsNotFound(Delete("x").status()));
  AskServer({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_TRUE(Announce(Version("y"), "a").ok());
}

class UnscriptedRedisDirectoryTest : public RedisDirectoryTest {
 protected:
  UnscriptedRedisDirectoryTest() : RedisDirectoryTest({"--rename-command", "SCRIPT", ""}) {}
};

TEST_F(UnscriptedRedisDirectoryTest, AServerThatCannotStoreScriptsGetsThemEachTime) {
  ASSERT_TRUE(Join("a").ok());
  ASSERT_TRUE(Announce(Version("x"), "a").ok());
  EXPECT_EQ(Holders("x"), std::set<NodeId>{"a"});
}

}  // namespace
}  // namespace tokamak::directory::redis

// A directory whose Redis changes under it: Sentinels that say who the master is, replicas that
// become it, hash slots that move. Whole daemons under load:
// tests/daemon/truth/redis_failover_test.cc.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/directory/redis/server/sentinel_master.h"
#include "tests/directory/fake_redis.h"
#include "tests/directory/redis_fixture.h"
#include "tests/directory/redis_group.h"

namespace tokamak::directory::redis {
namespace {

// Sentinels that are played: each names the master that a test gives it.
class SentinelsTest : public testing::Test {
 protected:
  struct Played {
    Place master;
    bool answers = true;
    int owed = 0;  // answers, which it gives when it answers again
    std::unique_ptr<FakeRedis> server;
  };

  SentinelsTest() {
    for (Played& sentinel : sentinels_) {
      sentinel.master = At(1);
      sentinel.server = std::make_unique<FakeRedis>(loop_, [&sentinel](const Command&) {
        ++sentinel.owed;
        std::string answers;
        while (sentinel.answers && sentinel.owed > 0) {
          --sentinel.owed;
          answers += FakeRedis::Array({"name", "m", "ip", sentinel.master.address.host, "port",
                                       absl::StrCat(sentinel.master.address.port), "num-other-sentinels", "2"});
        }
        return answers;
      });
    }
  }

  static Place At(uint16_t port) { return {{"10.0.0.1", port}, ""}; }
  Target SentinelTarget() {
    std::string text = "sentinel://";
    for (const Played& sentinel : sentinels_) {
      absl::StrAppend(&text, sentinel.server.get() == sentinels_[0].server.get() ? "" : ",",
                      sentinel.server->place().ToString());
    }
    return *Target::Parse(text + "/m");
  }
  void Open() {
    master_ = std::make_unique<SentinelMaster>(loop_, dialer_, SentinelTarget(), base::Random(1), ConnectionOptions());
  }
  absl::StatusOr<Place> Find() {
    return Run<absl::StatusOr<Place>>([&](auto done) { return master_->Find(kDeadline, done); });
  }
  absl::Status Confirm(const Place& place) {
    return Run<absl::Status>([&](auto done) { return master_->Confirm(place, kDeadline, done); });
  }
  template <typename T>
  T Run(const std::function<base::Pending(std::function<void(T)>)>& make) {
    T result = absl::InternalError("no answer");
    bool answered = false;
    const base::Pending call = make([&](T value) {
      result = std::move(value);
      answered = true;
    });
    EXPECT_FALSE(answered);
    loop_.RunUntil([&] { return answered; }, loop_.Now() + kPatience);
    return result;
  }

  static constexpr base::Duration kDeadline = base::Seconds(2);
  os::EpollLoop loop_;
  Dialer dialer_{loop_, nullptr};
  std::vector<Played> sentinels_ = std::vector<Played>(3);
  std::unique_ptr<SentinelMaster> master_;
};

TEST_F(SentinelsTest, AMajorityNamesTheMaster) {
  Open();
  EXPECT_EQ(*Find(), At(1));
  EXPECT_TRUE(Confirm(At(1)).ok());
  EXPECT_TRUE(absl::IsUnavailable(Confirm(At(2))));
  sentinels_[0].master = At(2);
  EXPECT_EQ(*Find(), At(1));
  EXPECT_TRUE(Confirm(At(1)).ok());
  sentinels_[1].master = At(2);
  EXPECT_EQ(*Find(), At(2));
  EXPECT_TRUE(absl::IsUnavailable(Confirm(At(1))));
  EXPECT_TRUE(Confirm(At(2)).ok());
}

TEST_F(SentinelsTest, AConfirmationCountsAnswersToLaterQuestionsOnly) {
  Open();
  ASSERT_EQ(*Find(), At(1));
  // Two of them said a moment ago that it is the master; now they are silent.
  sentinels_[0].answers = sentinels_[1].answers = false;
  const absl::Status status = Confirm(At(1));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  sentinels_[0].answers = true;
  const base::Time limit = loop_.Now() + kPatience;
  while (!Confirm(At(1)).ok() && loop_.Now() < limit) {
  }
  EXPECT_TRUE(Confirm(At(1)).ok());
}

TEST_F(SentinelsTest, WithoutAMajorityThereIsNoMasterAndNoConnectionEnds) {
  Open();
  ASSERT_EQ(*Find(), At(1));
  sentinels_[0].server.reset();
  sentinels_[1].server.reset();
  const absl::Status status = Find().status();
  EXPECT_TRUE(absl::StrContains(status.message(), "2 of 3 Sentinels do not answer: ")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "Connection refused") ||
              absl::StrContains(status.message(), "closed the connection"))
      << status;
  EXPECT_TRUE(master_->IsStillRight(At(1)));
}

TEST_F(SentinelsTest, ADisagreementIsReportedAsAFailoverUnderWay) {
  sentinels_[1].master = At(2);
  sentinels_[2].master = At(3);
  Open();
  EXPECT_TRUE(absl::StrContains(Find().status().message(), "do not agree: a failover is under way"));
}

TEST_F(SentinelsTest, AConnectionToAMasterThatWasReplacedIsGivenUp) {
  Open();
  ASSERT_EQ(*Find(), At(1));
  EXPECT_TRUE(master_->IsStillRight(At(1)));
  for (Played& sentinel : sentinels_) sentinel.master = At(2);
  EXPECT_TRUE(loop_.RunUntil([&] { return !master_->IsStillRight(At(1)); }, loop_.Now() + kPatience));
}

TEST_F(SentinelsTest, WaitingHandlesMayOutliveTheMasterUnanswered) {
  Open();
  const base::Pending find = master_->Find(kDeadline, [](const auto&) { FAIL(); });
  base::Pending confirm = master_->Confirm(At(1), kDeadline, [](const auto&) { FAIL(); });
  confirm.reset();
  master_.reset();
  loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(20));
}

// A directory whose master is real.
class ReplacedMasterTest : public SentinelsTest {
 protected:
  ReplacedMasterTest() {
    for (Played& sentinel : sentinels_) sentinel.master = {{"127.0.0.1", server_.port()}, ""};
    Options options;
    options.target = SentinelTarget();
    options.recovery = base::Milliseconds(1);
    directory_ = *RedisDirectory::Open(loop_, options);
  }
  absl::Status Join() {
    JoinRequest request;
    request.node = {"a", 1, {"10.0.0.1:7000"}, "soft", 1};
    request.lease = request.grace = kLong;
    return Run<absl::StatusOr<JoinReply>>([&](auto done) { return directory_->Join(request, kDeadline, done); })
        .status();
  }
  absl::Status Delete() {
    DeleteRequest request;
    request.id = base::ObjectId::FromName("x");
    request.generation = base::Generation{1};
    return Run<absl::StatusOr<DeleteReply>>([&](auto done) { return directory_->Delete(request, kDeadline, done); })
        .status();
  }

  RedisOnPort server_{RedisRole::kServer, {"--save", ""}};
  std::unique_ptr<RedisDirectory> directory_;
};

// It goes on answering: it has not heard that another is the master now.
TEST_F(ReplacedMasterTest, AReplacedMasterNeitherRenewsLeasesNorDeletes) {
  const auto answers = [this] {  // once it has learned what there is
    const base::Time limit = loop_.Now() + kPatience;
    while (loop_.Now() < limit) {
      if (Join().ok() && Delete().ok()) return true;
    }
    return false;
  };
  ASSERT_TRUE(answers());
  for (size_t i = 0; i < 2; ++i) sentinels_[i].master = At(1);
  for (const absl::Status& status : {Join(), Delete()}) {
    EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
  }
  for (size_t i = 0; i < 2; ++i) sentinels_[i].master = sentinels_[2].master;
  EXPECT_TRUE(answers());
}

// ---- reigns

class ReignTest : public testing::Test {
 protected:
  std::unique_ptr<RedisDirectory> OpenAt(const RedisOnPort& server) {
    Options options;
    options.target = *Target::Parse(absl::StrCat("redis://127.0.0.1:", server.port()));
    options.recovery = recovery_;
    return *RedisDirectory::Open(loop_, options);
  }
  absl::StatusOr<JoinReply> Join(Directory& directory, const NodeId& node, bool returning = false,
                                 bool complete = false) {
    JoinRequest request;
    request.node = {node, 1, {"10.0.0.1:7000"}, "soft", 1};
    request.lease = request.grace = kLong;
    request.returning = returning;
    request.complete = complete;
    absl::StatusOr<JoinReply> joined = absl::UnavailableError("not asked");
    const base::Time limit = loop_.Now() + kPatience;
    while (!joined.ok() && loop_.Now() < limit) {
      bool answered = false;
      const base::Pending call = directory.Join(request, kPatience, [&](absl::StatusOr<JoinReply> reply) {
        joined = std::move(reply);
        answered = true;
      });
      loop_.RunUntil([&] { return answered; }, limit);
      if (!joined.ok()) loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(5));
    }
    return joined;
  }
  absl::Status Announce(Directory& directory, const NodeId& node, const base::ObjectVersion& version,
                        bool established) {
    const Standing standing = established ? Standing::kEstablished : Standing::kNew;
    const directory::Update word = {Update::Kind::kAnnounce, version, 10, 2, standing};
    absl::Status status = absl::UnavailableError("not asked");
    const base::Time limit = loop_.Now() + kPatience;
    while (absl::IsUnavailable(status) && loop_.Now() < limit) {
      bool answered = false;
      const base::Pending call =
          directory.Update(node, {}, {word}, kPatience, [&](const absl::StatusOr<UpdateStatuses>& statuses) {
            status = statuses.ok() ? statuses->front() : statuses.status();
            answered = true;
          });
      loop_.RunUntil([&] { return answered; }, limit);
      if (absl::IsUnavailable(status)) loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(5));
    }
    return status;
  }
  absl::Status Delete(Directory& directory, const base::ObjectId& id) {
    absl::Status status = absl::UnavailableError("not asked");
    bool answered = false;
    DeleteRequest request;
    request.id = id;
    const base::Pending call = directory.Delete(request, kPatience, [&](const absl::StatusOr<DeleteReply>& reply) {
      status = reply.status();
      answered = true;
    });
    EXPECT_TRUE(loop_.RunUntil([&] { return answered; }, loop_.Now() + kPatience));
    return status;
  }
  static void Follow(const RedisOnPort& replica, const RedisOnPort& master) {
    ASSERT_TRUE(replica.Ask({"REPLICAOF", "127.0.0.1", absl::StrCat(master.port())}).ok());
    ASSERT_TRUE(replica.Await({"INFO", "replication"}, "master_link_status:up"));
  }
  static void Promote(const RedisOnPort& replica) {
    ASSERT_TRUE(replica.Ask({"REPLICAOF", "NO", "ONE"}).ok());
    ASSERT_TRUE(replica.Await({"ROLE"}, "master"));
  }
  // It has heard all that the master has.
  static void AwaitCaughtUp(const RedisOnPort& replica, const RedisOnPort& master) {
    const auto keys = master.Ask({"DBSIZE"});
    ASSERT_TRUE(replica.Await({"DBSIZE"}, *keys));
  }

  // The other server, which takes its place, knows a and b, and not what a has announced last.
  void LoseTheMasterThatAcceptedX() {
    Follow(other_, one_);
    const auto before = OpenAt(one_);
    ASSERT_TRUE(Join(*before, "a").ok());
    ASSERT_TRUE(Join(*before, "b").ok());
    AwaitCaughtUp(other_, one_);
    Promote(other_);
    ASSERT_TRUE(Announce(*before, "a", Version("x", 1), false).ok());
    one_.Kill();
  }

  os::EpollLoop loop_;
  base::Duration recovery_ = Options().recovery;
  const Arguments flags_ = {"--save", "", "--repl-diskless-sync-delay", "0"};
  RedisOnPort one_{RedisRole::kServer, flags_};
  RedisOnPort other_{RedisRole::kServer, flags_};
};

TEST_F(ReignTest, AReplicaThatBecomesTheMasterLearnsEverythingAgain) {
  Follow(other_, one_);
  ASSERT_TRUE(Join(*OpenAt(one_), "a")->entered);
  AwaitCaughtUp(other_, one_);
  Promote(other_);
  ASSERT_TRUE(Join(*OpenAt(other_), "a", true)->entered);
}

// Neither its process nor, since nobody joined the other, its data shows it.
TEST_F(ReignTest, AMasterThatWasAReplicaForAWhileIsNewAsWell) {
  Follow(other_, one_);
  const auto directory = OpenAt(one_);
  ASSERT_TRUE(Join(*directory, "a")->entered);
  EXPECT_FALSE(Join(*directory, "a", true)->entered);
  AwaitCaughtUp(other_, one_);
  Promote(other_);
  Follow(one_, other_);
  Promote(one_);
  EXPECT_TRUE(Join(*directory, "a", true)->entered);
}

TEST_F(ReignTest, ANewMastersFirstContentsGiveWayToOlderOnes) {
  ASSERT_NO_FATAL_FAILURE(LoseTheMasterThatAcceptedX());
  const auto after = OpenAt(other_);
  ASSERT_TRUE(Announce(*after, "b", Version("x", 2), false).ok());
  ASSERT_TRUE(Join(*after, "a", true)->entered);
  EXPECT_TRUE(Announce(*after, "a", Version("x", 1), true).ok());
  ASSERT_TRUE(Join(*after, "b", true)->entered);
  EXPECT_TRUE(absl::IsAborted(Announce(*after, "b", Version("x", 2), true)));
}

// Later than the new master's time to learn: what it holds was accepted by the old one alone.
TEST_F(ReignTest, ANodeKnownToTheReplicaIsAwaitedHoweverLateItComes) {
  recovery_ = base::Milliseconds(50);
  ASSERT_NO_FATAL_FAILURE(LoseTheMasterThatAcceptedX());
  const auto after = OpenAt(other_);
  ASSERT_TRUE(Join(*after, "b", true)->entered);
  ASSERT_FALSE(Join(*after, "b", true, /*complete=*/true)->entered);
  const base::ObjectId x = Version("x", 1).id;
  absl::Status status = Delete(*after, x);
  const base::Time limit = loop_.Now() + kPatience;
  while (absl::StrContains(status.message(), "is learning who holds what") && loop_.Now() < limit) {
    status = Delete(*after, x);
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "node a has not told yet all that it holds")) << status;

  ASSERT_TRUE(Join(*after, "a", true)->entered);
  ASSERT_TRUE(Announce(*after, "a", Version("x", 1), true).ok());
  EXPECT_TRUE(absl::IsUnavailable(Delete(*after, x)));
  ASSERT_FALSE(Join(*after, "a", true, /*complete=*/true)->entered);
  EXPECT_EQ(Delete(*after, x), absl::OkStatus());
}

TEST_F(ReignTest, AServerThatBecomesAReplicaIsLeft) {
  const auto directory = OpenAt(one_);
  ASSERT_TRUE(Join(*directory, "a").ok());
  const uint64_t attempts = directory->connection_attempts();
  Follow(one_, other_);
  absl::Status status;
  JoinRequest request;
  request.node = {"a", 1, {"10.0.0.1:7000"}, "soft", 1};
  request.lease = kLong;
  const base::Pending call =
      directory->Join(request, kPatience, [&](const absl::StatusOr<JoinReply>& reply) { status = reply.status(); });
  EXPECT_TRUE(loop_.RunUntil([&] { return directory->connection_attempts() > attempts; }, loop_.Now() + kPatience));
  EXPECT_TRUE(absl::StrContains(status.message(), "READONLY")) << status;
}

// ---- a Redis Cluster

class RedisClusterTest : public ReignTest {
 protected:
  RedisCluster cluster_;
};

TEST_F(RedisClusterTest, AMovedSlotLeavesNothingHalfDoneAndLearnsEverythingAgain) {
  const std::string key = "{tokamak}:server";
  Options options;
  options.target = cluster_.target();
  const auto directory = RedisDirectory::Open(loop_, options);
  ASSERT_TRUE(directory.ok()) << directory.status();
  ASSERT_TRUE(Join(**directory, "a")->entered);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Announce(**directory, "a", Version(absl::StrCat("x", i)), false).ok());
  }
  const size_t owner = cluster_.OwnerOf(key, 0);
  const size_t next = (owner + 1) % 3;
  cluster_.MoveSlot(key, next, [&] {
    // Its object, its lease and the node's key may be here or there.
    for (int i = 0; i < 20; ++i) {
      absl::Status status;
      const base::Pending call =
          (*directory)
              ->Update("a", {}, {{Update::Kind::kWithdraw, Version(absl::StrCat("x", i)), 0, 0}}, kPatience,
                       [&](const absl::StatusOr<UpdateStatuses>& statuses) { status = statuses.status(); });
      ASSERT_TRUE(loop_.RunUntil([&] { return !status.ok(); }, loop_.Now() + kPatience)) << i;
      EXPECT_TRUE(absl::StrContains(status.message(), "its hash slot is being moved to another server")) << status;
    }
  });
  EXPECT_TRUE(Join(**directory, "a", true)->entered);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Announce(**directory, "a", Version(absl::StrCat("x", i)), true).ok());
  }
  absl::StatusOr<std::vector<uint32_t>> lost = absl::InternalError("no answer");
  const base::Pending verify =
      (*directory)->Verify("a", {Version("x0"), Version("x19"), Version("y")}, kPatience, [&](const auto& places) {
        lost = places;
      });
  EXPECT_TRUE(loop_.RunUntil([&] { return lost.ok(); }, loop_.Now() + kPatience)) << lost.status();
  EXPECT_EQ(*lost, Places{2});
  // A channel is heard on whichever server.
  absl::StatusOr<LocatedObject> found = absl::InternalError("no answer");
  const base::Pending wait =
      (*directory)->Locate({base::ObjectId::FromName("y"), kPatience, kPatience * 2, "", false}, [&](const auto& info) {
        found = info;
      });
  loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(100));
  ASSERT_TRUE(Announce(**directory, "a", Version("y"), false).ok());
  EXPECT_TRUE(loop_.RunUntil([&] { return found.ok(); }, loop_.Now() + base::Seconds(10))) << found.status();
}

}  // namespace
}  // namespace tokamak::directory::redis

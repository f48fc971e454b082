#include <string>
#include <vector>

#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Seconds;

class ObjectDeleteTest : public NodeTest {
 protected:
  // x on the nodes 1 and 2.
  void BuildWithCopies(size_t machines) {
    Build(machines);
    Put(1, "x", 1000);
    ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
    cluster_->Settle();
  }
};

TEST_F(ObjectDeleteTest, ReachesEveryHolder) {
  BuildWithCopies(4);
  const auto deleted = cluster_->Delete(at(3), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(*deleted, 2u);
  EXPECT_FALSE(at(1).Has("x"));
  EXPECT_FALSE(at(2).Has("x"));
  cluster_->Settle();
  EXPECT_TRUE(Holders("x").empty());
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(3), "x", Within(Seconds(2)))));
}

TEST_F(ObjectDeleteTest, DeletesTheOwnCopyToo) {
  BuildWithCopies(3);
  const auto deleted = cluster_->Delete(at(2), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(*deleted, 2u);
  EXPECT_FALSE(at(2).Has("x"));
}

TEST_F(ObjectDeleteTest, AMissingObjectIsNotFoundOnceTheDirectoryCanKnow) {
  Build(2);
  const absl::Status status = cluster_->Delete(at(1), "x").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("is learning who holds what: try again in"), std::string::npos) << status;
  cluster_->RunFor(cluster_->options.directory_recovery);
  EXPECT_TRUE(absl::IsNotFound(cluster_->Delete(at(1), "x").status()));
}

TEST_F(ObjectDeleteTest, ARecentPutIsDeletedThoughTheDirectoryHasJustStarted) {
  Build(2);
  ASSERT_EQ(at(1).Put("x", 100), absl::OkStatus());
  ASSERT_EQ(at(1).Put("y", 100), absl::OkStatus());
  cluster_->RunFor(base::Nanoseconds(1));  // the node knows, but gathers what it announces
  for (const char* object : {"y", "x"}) {
    const auto deleted = cluster_->Delete(at(1), object);
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    EXPECT_EQ(*deleted, 1u);
  }
}

TEST_F(ObjectDeleteTest, AnUnannouncedObjectIsDeletedHere) {
  Build(2);
  cluster_->RunFor(cluster_->options.directory_recovery);
  ASSERT_EQ(at(1).Put("x", 100), absl::OkStatus());
  const auto deleted = cluster_->Delete(at(1), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(*deleted, 1u);
  cluster_->Settle();
  EXPECT_TRUE(Holders("x").empty());
}

// Beside a deletion of another content that has not ended: the directory names that one, whatever
// it is asked of.
TEST_F(ObjectDeleteTest, AnUnannouncedObjectIsDeletedHereBesideAnotherDeletion) {
  BuildWithCopies(4);
  at(2).Freeze({Seconds(30), Seconds(30), Seconds(30)});
  cluster_->RunFor(Seconds(12));  // past its lease: it is silent, and nobody waits for it
  ASSERT_TRUE(absl::IsUnavailable(cluster_->Delete(at(3), "x").status()));
  ASSERT_FALSE(at(1).Has("x"));
  ASSERT_EQ(at(1).Put("x", 100), absl::OkStatus());
  const absl::Status status = cluster_->Delete(at(1), "x").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(at(1).Has("x"));
}

// n1 hears of that with its next renewal only.
TEST_F(ObjectDeleteTest, ADisplacedContentIsDeletedBeforeTheIdIsFree) {
  Build(4);
  cluster_->RunFor(cluster_->options.directory_recovery - base::Milliseconds(500));
  Put(1, "x", 1000);
  ASSERT_EQ(Announce("x", "n2"), absl::OkStatus()) << "accepted by a directory before this one";
  cluster_->RunFor(base::Milliseconds(600));
  ASSERT_EQ(Holders("x"), std::vector<directory::NodeId>{"n2"});
  ASSERT_TRUE(at(1).Has("x"));
  ASSERT_TRUE(cluster_->Delete(at(3), "x").ok());
  EXPECT_FALSE(at(1).Has("x"));
}

// The directory has lost what it knew of the object, as a server that evicts does.
TEST_F(ObjectDeleteTest, AnObjectThatTheDirectoryLostIsDeletedOnEveryNode) {
  BuildWithCopies(4);
  cluster_->RunFor(cluster_->options.directory_recovery);  // it has learned what there is
  const base::Generation lost = GenerationOn(1, "x");
  for (const char* node : {"n1", "n2"}) {
    ASSERT_EQ(Say(directory::Update::Kind::kWithdraw, "x", node, lost), absl::OkStatus());
  }
  ASSERT_TRUE(Holders("x").empty());
  const auto deleted = cluster_->Delete(at(1), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(*deleted, 2u);
  EXPECT_FALSE(at(1).Has("x"));
  EXPECT_FALSE(at(2).Has("x"));
  Put(3, "x", 500);
  EXPECT_EQ(Read(2, "x"), GenerationOn(3, "x"));
}

// One holder was found again before the deletion; the others were not.
TEST_F(ObjectDeleteTest, AnObjectThatTheDirectoryLostInPartIsDeletedOnEveryNode) {
  BuildWithCopies(5);
  ASSERT_EQ(cluster_->Get(at(3), "x"), absl::OkStatus());
  cluster_->Settle();
  cluster_->RunFor(cluster_->options.directory_recovery);  // it has learned what there is
  const base::Generation lost = GenerationOn(1, "x");
  for (const char* node : {"n1", "n2", "n3"}) {
    ASSERT_EQ(Say(directory::Update::Kind::kWithdraw, "x", node, lost), absl::OkStatus());
  }
  ASSERT_EQ(Say(directory::Update::Kind::kAnnounce, "x", "n2", lost), absl::OkStatus());
  const auto deleted = cluster_->Delete(at(1), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(*deleted, 3u);
  for (const size_t node : {1, 2, 3}) EXPECT_FALSE(at(node).Has("x")) << node;
}

// The first deletion finds the loss out; meanwhile its node has said again what else it holds, and
// the others have not.
TEST_F(ObjectDeleteTest, AfterALossIsFoundDeletionsReachEveryNode) {
  BuildWithCopies(4);
  Put(1, "y", 500);
  ASSERT_EQ(cluster_->Get(at(2), "y"), absl::OkStatus());
  cluster_->Settle();
  cluster_->RunFor(cluster_->options.directory_recovery);  // it has learned what there is
  for (const char* id : {"x", "y"}) {
    for (const char* node : {"n1", "n2"}) {
      ASSERT_EQ(Say(directory::Update::Kind::kWithdraw, id, node, GenerationOn(1, id)), absl::OkStatus());
    }
  }
  ASSERT_TRUE(cluster_->Delete(at(1), "x").ok());
  cluster_->RunFor(Seconds(1));
  ASSERT_EQ(Holders("y"), std::vector<directory::NodeId>{"n1"});
  const auto deleted = cluster_->Delete(at(1), "y");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(*deleted, 2u);
  EXPECT_FALSE(at(2).Has("y"));
}

TEST_F(ObjectDeleteTest, ANodeThatDoesNotAnswerIsNamedWhenTheDirectoryLostTheHolders) {
  BuildWithCopies(4);
  cluster_->RunFor(cluster_->options.directory_recovery);  // it has learned what there is
  const base::Generation lost = GenerationOn(1, "x");
  for (const char* node : {"n1", "n2"}) {
    ASSERT_EQ(Say(directory::Update::Kind::kWithdraw, "x", node, lost), absl::OkStatus());
  }
  at(2).Freeze({Seconds(8), Seconds(8), Seconds(8)});
  const absl::Status status = cluster_->Delete(at(1), "x").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("n2"), std::string::npos) << status;
  EXPECT_FALSE(at(1).Has("x"));
  cluster_->RunFor(Seconds(45));
  EXPECT_FALSE(at(2).Has("x")) << "it finds that its copy was deleted";
}

// It was silent when all others were asked.
TEST_F(ObjectDeleteTest, AReturningNodeChecksAtOnceWhatTheDirectoryLost) {
  BuildWithCopies(4);
  cluster_->RunFor(cluster_->options.directory_recovery);  // it has learned what there is
  const base::Generation lost = GenerationOn(1, "x");
  for (const char* node : {"n1", "n2"}) {
    ASSERT_EQ(Say(directory::Update::Kind::kWithdraw, "x", node, lost), absl::OkStatus());
  }
  at(2).Freeze({Seconds(14), Seconds(14), Seconds(14)});
  cluster_->RunFor(Seconds(11));
  const auto deleted = cluster_->Delete(at(1), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(at(2).Has("x"));
  cluster_->RunFor(Seconds(4));
  EXPECT_FALSE(at(2).Has("x"));
}

TEST_F(ObjectDeleteTest, AHolderThatDoesNotAnswerIsNamed) {
  BuildWithCopies(4);
  cluster_->Crash(2);
  const absl::Status status = cluster_->Delete(at(3), "x").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("n2"), std::string::npos) << status;
  EXPECT_FALSE(at(1).Has("x"));
}

TEST_F(ObjectDeleteTest, AStalledHolderIsNamedWithinOneDeadline) {
  BuildWithCopies(4);
  at(2).Freeze({Seconds(30), Seconds(30), Seconds(30)});
  for (const size_t node : {3, 1, 0}) {  // again and again
    const base::Time asked = cluster_->time.Now();
    const absl::Status status = cluster_->Delete(at(node), "x").status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find("n2"), std::string::npos) << status;
    EXPECT_LT(cluster_->time.Now() - asked, base::Milliseconds(2100)) << node;
  }
}

TEST_F(ObjectDeleteTest, AHolderThatFallsSilentWhileItIsAskedIsNamedOnce) {
  BuildWithCopies(4);
  at(2).Freeze({Seconds(30), Seconds(30), Seconds(30)});
  const base::Time end = cluster_->time.Now() + Seconds(14);  // its lease ends on the way
  while (cluster_->time.Now() < end) {
    const absl::Status status = cluster_->Delete(at(3), "x").status();
    EXPECT_NE(status.message().find("n2 does not answer"), std::string::npos) << status;
    cluster_->RunFor(base::Milliseconds(100));
  }
}

// A1 (b): a holder that was stopped past its lease has a copy of what was deleted meanwhile.
TEST_F(ObjectDeleteTest, ACopyOnANodeThatStalledPastItsLeaseNeverComesBack) {
  BuildWithCopies(4);
  const base::Generation first = GenerationOn(1, "x");
  at(2).Freeze({Seconds(12), Seconds(12), Seconds(12)});
  cluster_->RunFor(Seconds(11));
  EXPECT_TRUE(absl::IsUnavailable(cluster_->Delete(at(3), "x").status()));
  // Its id is not free before.
  ASSERT_EQ(at(1).Put("x", 1000), absl::OkStatus());
  cluster_->RunFor(Seconds(5));
  EXPECT_FALSE(at(1).Has("x")) << "another content was accepted";
  EXPECT_FALSE(at(2).Has("x")) << "the node that is back was not told";
  EXPECT_TRUE(absl::IsNotFound(cluster_->Delete(at(3), "x").status()));
  Put(1, "x", 1000);
  const base::Generation second = GenerationOn(1, "x");
  EXPECT_NE(first, second);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(Read(i, "x"), second) << i;
}

// A1 (a): more holders than one answer names.
TEST_F(ObjectDeleteTest, ReachesMoreHoldersThanOneAnswerNames) {
  sim::HostOptions small;
  small.memory = 64 << 10;
  Build(70, small);
  Put(1, "x", 1000);
  for (size_t i = 2; i < 70; ++i) ASSERT_EQ(cluster_->Get(at(i), "x"), absl::OkStatus());
  cluster_->Settle();
  const auto deleted = cluster_->Delete(at(0), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(*deleted, 69u);
  for (size_t i = 0; i < 70; ++i) EXPECT_FALSE(at(i).Has("x")) << i;
  Put(1, "x", 1000);
  const base::Generation second = GenerationOn(1, "x");
  for (size_t i = 0; i < 70; ++i) EXPECT_EQ(Read(i, "x"), second) << i;
}

// A1 (c), A3: a pull that runs.
TEST_F(ObjectDeleteTest, APullUnderWayEndsAndItsCopyIsNotKept) {
  for (const transport::Protocol protocol :
       {transport::Protocol::kEager, transport::Protocol::kRead, transport::Protocol::kWrite}) {
    sim::ClusterOptions options;
    options.link.picoseconds_per_byte = 80'000;  // 100 Mb/s
    Build(3, {}, options);
    Put(1, "x", 4'000'000);
    const auto got = at(2).StartGet({"x"}, By(protocol));
    ASSERT_TRUE(Serves(1));
    cluster_->RunFor(base::Milliseconds(50));
    const auto deleted = cluster_->Delete(at(0), "x");
    ASSERT_TRUE(deleted.ok()) << deleted.status();
    EXPECT_FALSE(at(2).Has("x"));
    EXPECT_FALSE(got->done);
    EXPECT_EQ(Read(2, "x", Seconds(1)), base::kNoGeneration);
    got->handle.reset();
    cluster_->Settle();
    EXPECT_FALSE(at(2).Has("x"));
    EXPECT_TRUE(Holders("x").empty());
    EXPECT_EQ(at(2).node().pulls().counters().deleted, 1u);
    cluster_->ExpectClean();
  }
}

TEST_F(ObjectDeleteTest, AGetThatWaitedAcrossADeletionReadsTheNextContent) {
  sim::ClusterOptions options;
  options.link.picoseconds_per_byte = 80'000;
  Build(3, {}, options);
  Put(1, "x", 4'000'000);
  const auto got = at(2).StartGet({"x"}, Within(Seconds(30)));
  ASSERT_TRUE(Serves(1));
  ASSERT_TRUE(cluster_->Delete(at(0), "x").ok());
  Put(0, "x", 500);
  cluster_->Await(got);
  ASSERT_EQ(got->results[0].status, absl::OkStatus());
  EXPECT_EQ(got->results[0].location->generation, GenerationOn(0, "x"));
  at(2).Release(*got);
}

TEST_F(ObjectDeleteTest, ADeleteThatIsDroppedIsNotAnswered) {
  BuildWithCopies(3);
  base::Pending call = at(0).node().Delete(Id("x"), [](const absl::StatusOr<uint32_t>&) { FAIL(); });
  call.reset();
  cluster_->RunFor(Seconds(5));
}

TEST_F(ObjectDeleteTest, AStaleHolderIsCorrected) {
  Build(3);
  ASSERT_EQ(Say(directory::Update::Kind::kAnnounce, "x", "n1"), absl::OkStatus());
  EXPECT_TRUE(cluster_->Delete(at(2), "x").ok());
  cluster_->Settle();
  EXPECT_TRUE(Holders("x").empty());
}

// A13: at once, and nothing is deleted.
TEST_F(ObjectDeleteTest, WithoutTheDirectoryNothingIsDeletedAndTheErrorExplainsIt) {
  BuildWithCopies(3);
  cluster_->network.Cut(at(2).address, at(0).address);
  cluster_->RunFor(Seconds(6));
  const base::Time asked = cluster_->time.Now();
  const absl::Status status = cluster_->Delete(at(2), "x").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(cluster_->time.Now() - asked, base::Milliseconds(1));
  EXPECT_TRUE(at(2).Has("x"));
  EXPECT_TRUE(at(1).Has("x"));
}

TEST_F(ObjectDeleteTest, AReaderKeepsItsObjectUntilReleased) {
  BuildWithCopies(3);
  const auto place = at(1).store().Acquire(Id("x"), at(1).me);
  ASSERT_TRUE(place.ok());
  ASSERT_TRUE(cluster_->Delete(at(2), "x").ok());
  EXPECT_FALSE(at(1).Has("x"));
  EXPECT_TRUE(at(1).IsRight(Id("x"), *place));
  at(1).Release("x");
}

TEST_F(ObjectDeleteTest, AnObjectMayBePutAgainAfter) {
  BuildWithCopies(3);
  ASSERT_TRUE(cluster_->Delete(at(2), "x").ok());
  cluster_->Settle();
  Put(2, "x", 2000);
  EXPECT_EQ(cluster_->Get(at(1), "x"), absl::OkStatus());
}

TEST_F(ObjectDeleteTest, ManyDeletesAtOnceAreAllAnswered) {
  Build(3);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(at(1).Put(std::to_string(i), 100), absl::OkStatus());
  cluster_->Settle();
  uint32_t copies = 0;
  int answers = 0;
  std::vector<base::Pending> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(at(2).node().Delete(Id(std::to_string(i)), [&](const absl::StatusOr<uint32_t>& result) {
      ++answers;
      copies += result.value_or(0);
    }));
  }
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers == 100; }));
  EXPECT_EQ(copies, 100u);
}

// ---- copies that were made while the directory was away

class VouchedCopyTest : public ObjectDeleteTest {
 protected:
  void Cut(size_t a, size_t b) {
    cluster_->network.Cut(at(a).address, at(b).address);
    cluster_->network.Cut(at(b).address, at(a).address);
  }
  // x was put on node 1; since the directory, node 0, is away for both, it does not know the copy
  // of node 2.
  void BuildWithCopyOfAnOutage(size_t machines) {
    BuildWithCopies(machines);
    for (size_t i = 3; i < machines; ++i) ASSERT_EQ(cluster_->Get(at(i), "x"), absl::OkStatus());
    cluster_->Settle();
    for (size_t i = 2; i < machines; ++i) at(i).store().Evict(1 << 20);  // they know where it was
    cluster_->RunFor(Seconds(1));
    ASSERT_EQ(Holders("x"), std::vector<directory::NodeId>{"n1"});
    for (size_t i = 1; i < machines; ++i) Cut(i, 0);
    cluster_->RunFor(Seconds(6));
    ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
    ASSERT_EQ(at(2).node().pulls().counters().vouched_for, 1u);
  }
  // The way between the two is as before; all others are cut as they are.
  void Mend(size_t a, size_t b, size_t machines) {
    cluster_->network.Heal();
    for (size_t i = 1; i < machines; ++i) {
      if (i != a && i != b) Cut(i, 0);
    }
  }
};

TEST_F(VouchedCopyTest, ADeletionReachesACopyThroughItsHolder) {
  BuildWithCopyOfAnOutage(3);
  Mend(1, 0, 3);  // node 2 still cannot reach the directory
  cluster_->RunFor(Seconds(4));
  ASSERT_TRUE(at(2).Has("x"));
  const auto deleted = cluster_->Delete(at(1), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(at(2).Has("x"));
  EXPECT_TRUE(absl::IsNotFound(cluster_->Delete(at(0), "x").status())) << "the id is free";
}

TEST_F(VouchedCopyTest, ADeletionThroughAnotherNodeReachesACopyAsWell) {
  BuildWithCopyOfAnOutage(3);
  Mend(1, 0, 3);
  cluster_->RunFor(Seconds(4));
  const auto deleted = cluster_->Delete(at(0), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(at(2).Has("x"));
}

TEST_F(VouchedCopyTest, NoDeletionIsPromisedWhileTheCopysNodeDoesNotAnswer) {
  BuildWithCopyOfAnOutage(3);
  Mend(1, 0, 3);
  Cut(2, 1);
  cluster_->RunFor(Seconds(4));
  const absl::Status unavailable = cluster_->Delete(at(0), "x").status();
  EXPECT_TRUE(absl::IsUnavailable(unavailable)) << unavailable;
  EXPECT_TRUE(at(2).Has("x"));
  const absl::Status again = cluster_->Delete(at(1), "x").status();
  EXPECT_TRUE(absl::IsUnavailable(again)) << again;

  Mend(1, 0, 3);
  cluster_->RunFor(Seconds(4));
  EXPECT_FALSE(at(2).Has("x")) << "it was told when it could be";
  const absl::Status over = cluster_->Delete(at(0), "x").status();
  EXPECT_TRUE(over.ok() || absl::IsNotFound(over)) << over;
}

TEST_F(VouchedCopyTest, ACopyOfACopyIsReachedToo) {
  BuildWithCopyOfAnOutage(4);
  Cut(3, 1);  // so that it gets it from node 2
  ASSERT_EQ(at(3).Has("x"), false);
  ASSERT_EQ(cluster_->Get(at(3), "x", Within(Seconds(60))), absl::OkStatus());
  Mend(1, 0, 4);
  cluster_->RunFor(Seconds(4));
  const auto deleted = cluster_->Delete(at(1), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(at(2).Has("x"));
  EXPECT_FALSE(at(3).Has("x"));
}

TEST_F(VouchedCopyTest, AHolderThatEvictedItsCopyIsStillAsked) {
  BuildWithCopyOfAnOutage(3);
  Mend(1, 0, 3);
  cluster_->RunFor(Seconds(4));
  ASSERT_TRUE(at(1).store().Delete(Id("x")).ok());  // as an eviction does, of a cache
  cluster_->RunFor(Seconds(1));
  const auto deleted = cluster_->Delete(at(0), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(at(2).Has("x"));
}

TEST_F(VouchedCopyTest, AnAnnouncedCopyIsNotVouchedForForEver) {
  BuildWithCopyOfAnOutage(3);
  cluster_->network.Heal();
  cluster_->RunFor(Seconds(4));
  EXPECT_EQ(Holders("x"), (std::vector<directory::NodeId>{"n1", "n2"}));
  ASSERT_TRUE(at(1).store().Delete(Id("x")).ok());
  cluster_->RunFor(Seconds(80));
  EXPECT_EQ(Holders("x"), std::vector<directory::NodeId>{"n2"});
}

// Node 1 reached the directory last a minute before node 2 did, and what it vouched for is over
// with its own lease and grace: from then on the directory has no holder to ask.
TEST_F(VouchedCopyTest, ACopyEndsWithTheWordOfItsHolder) {
  BuildWithCopies(3);
  at(2).store().Evict(1 << 20);
  cluster_->RunFor(Seconds(1));
  Cut(1, 0);
  cluster_->RunFor(Seconds(55));
  Cut(2, 0);
  cluster_->RunFor(Seconds(6));
  ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  ASSERT_EQ(at(2).node().pulls().counters().vouched_for, 1u);
  cluster_->RunFor(Seconds(10));
  EXPECT_FALSE(at(2).Has("x"));
  EXPECT_FALSE(at(2).node().membership().fenced());
  EXPECT_TRUE(at(1).node().membership().fenced());
}

TEST_F(VouchedCopyTest, ANodeDoesNotVouchBeyondItsOwnVouch) {
  BuildWithCopies(4);
  ASSERT_EQ(cluster_->Get(at(3), "x"), absl::OkStatus());
  cluster_->Settle();
  for (const size_t i : {2, 3}) at(i).store().Evict(1 << 20);
  cluster_->RunFor(Seconds(1));
  Cut(1, 0);
  cluster_->RunFor(Seconds(55));
  for (const size_t i : {2, 3}) Cut(i, 0);
  cluster_->RunFor(Seconds(6));
  ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  Cut(3, 1);  // so that it gets it from node 2
  ASSERT_EQ(cluster_->Get(at(3), "x", Within(Seconds(5))), absl::OkStatus());
  cluster_->RunFor(Seconds(10));
  EXPECT_FALSE(at(2).Has("x"));
  EXPECT_FALSE(at(3).Has("x"));
}

// The directory answers node 1, so it can have deleted what node 2 wants.
TEST_F(VouchedCopyTest, ANodeThatIsCutOffAloneIsVouchedFor) {
  BuildWithCopies(3);
  at(2).store().Evict(1 << 20);
  cluster_->RunFor(Seconds(1));
  Cut(2, 0);
  cluster_->RunFor(Seconds(6));
  ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  const auto deleted = cluster_->Delete(at(0), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(at(2).Has("x"));
}

TEST_F(VouchedCopyTest, ADeletedObjectIsNotReadByANodeThatWasCutOffAlone) {
  BuildWithCopies(3);
  at(2).store().Evict(1 << 20);
  cluster_->RunFor(Seconds(1));
  Cut(2, 0);
  cluster_->RunFor(Seconds(6));
  const auto deleted = cluster_->Delete(at(0), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(cluster_->Get(at(2), "x", Within(Seconds(3))).ok());
  EXPECT_FALSE(at(2).Has("x"));
}

TEST_F(ObjectDeleteTest, MalformedRequestsGetNoAnswerAndHarmNothing) {
  Build(2);
  Put(0, "x", 100);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{21}, size_t{28}, size_t{30}}) {
    std::vector<uint8_t> reply = {1};
    std::vector<uint8_t> request(1 + size, 2);
    const base::Pending work = at(0).node().call_router().Handle(
        request, [&](absl::Span<const uint8_t> bytes) { reply.assign(bytes.begin(), bytes.end()); });
    EXPECT_TRUE(reply.empty());
  }
  EXPECT_TRUE(at(0).Has("x"));
}

}  // namespace
}  // namespace tokamak::node

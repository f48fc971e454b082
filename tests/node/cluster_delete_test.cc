#include <string>
#include <vector>

#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Seconds;

class ClusterDeleteTest : public NodeTest {
 protected:
  // x on the nodes 1 and 2.
  void BuildWithCopies(size_t machines) {
    Build(machines);
    Put(1, "x", 1000);
    ASSERT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
    cluster_->Settle();
  }
};

TEST_F(ClusterDeleteTest, ReachesEveryHolder) {
  BuildWithCopies(4);
  const auto deleted = cluster_->Delete(at(3), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->copies, 2u);
  EXPECT_EQ(deleted->unreachable, 0u);
  EXPECT_FALSE(at(1).Has("x"));
  EXPECT_FALSE(at(2).Has("x"));
  cluster_->Settle();
  EXPECT_TRUE(Holders("x").empty());
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(3), "x", Within(Seconds(2)))));
}

TEST_F(ClusterDeleteTest, DeletesTheOwnCopyToo) {
  BuildWithCopies(3);
  const auto deleted = cluster_->Delete(at(2), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->copies, 2u);
  EXPECT_FALSE(at(2).Has("x"));
}

TEST_F(ClusterDeleteTest, WhatNobodyHasIsNotFound) {
  Build(2);
  EXPECT_TRUE(absl::IsNotFound(cluster_->Delete(at(1), "x").status()));
}

TEST_F(ClusterDeleteTest, WhatIsNotAnnouncedYetIsDeletedHere) {
  Build(2);
  ASSERT_EQ(at(1).Put("x", 100), absl::OkStatus());
  const auto deleted = cluster_->Delete(at(1), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->copies, 1u);
  cluster_->Settle();
  EXPECT_TRUE(Holders("x").empty());
}

TEST_F(ClusterDeleteTest, AHolderThatDoesNotAnswerIsCounted) {
  BuildWithCopies(4);
  cluster_->Crash(2);
  const auto deleted = cluster_->Delete(at(3), "x");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->copies, 1u);
  EXPECT_EQ(deleted->unreachable, 1u);
}

TEST_F(ClusterDeleteTest, AStaleHolderIsCorrected) {
  Build(3);
  at(0).served->Announce(Id("x"), 1000, 0, "n1", Seconds(1), [](const absl::Status&) {});
  EXPECT_TRUE(absl::IsNotFound(cluster_->Delete(at(2), "x").status()));
  cluster_->Settle();
  EXPECT_TRUE(Holders("x").empty());
}

TEST_F(ClusterDeleteTest, WithoutTheDirectoryOnlyTheOwnCopyGoesAndTheErrorSaysSo) {
  BuildWithCopies(3);
  cluster_->fabric.Cut(at(2).address, at(0).address);
  const absl::Status status = cluster_->Delete(at(2), "x").status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("other holders are unknown"), std::string::npos) << status;
  EXPECT_FALSE(at(2).Has("x"));
  EXPECT_TRUE(at(1).Has("x"));
}

TEST_F(ClusterDeleteTest, WhoReadsAnObjectKeepsItUntilReleased) {
  BuildWithCopies(3);
  const auto place = at(1).store->Acquire(Id("x"), at(1).me);
  ASSERT_TRUE(place.ok());
  ASSERT_TRUE(cluster_->Delete(at(2), "x").ok());
  EXPECT_FALSE(at(1).Has("x"));
  EXPECT_TRUE(at(1).IsRight(Id("x"), *place));
  at(1).Release("x");
}

TEST_F(ClusterDeleteTest, AnObjectMayBePutAgainAfter) {
  BuildWithCopies(3);
  ASSERT_TRUE(cluster_->Delete(at(2), "x").ok());
  cluster_->Settle();
  Put(2, "x", 2000);
  EXPECT_EQ(cluster_->Get(at(1), "x"), absl::OkStatus());
}

TEST_F(ClusterDeleteTest, ManyDeletesAtOnceAreAllAnswered) {
  Build(3);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(at(1).Put(std::to_string(i), 100), absl::OkStatus());
  cluster_->Settle();
  uint32_t copies = 0;
  int answers = 0;
  for (int i = 0; i < 100; ++i) {
    at(2).node->Delete(Id(std::to_string(i)), [&](const absl::StatusOr<DeleteResult>& result) {
      ++answers;
      copies += result.ok() ? result->copies : 0;
    });
  }
  EXPECT_TRUE(cluster_->RunUntil([&] { return answers == 100; }));
  EXPECT_EQ(copies, 100u);
}

TEST_F(ClusterDeleteTest, RequestsThatMakeNoSenseGetNoAnswerAndHarmNothing) {
  Build(2);
  Put(0, "x", 100);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{20}, size_t{22}}) {
    std::vector<uint8_t> reply = {1};
    std::vector<uint8_t> request(1 + size, 2);
    at(0).node->services().Handle(request,
                                  [&](absl::Span<const uint8_t> bytes) { reply.assign(bytes.begin(), bytes.end()); });
    EXPECT_TRUE(reply.empty());
  }
  EXPECT_TRUE(at(0).Has("x"));
}

}  // namespace
}  // namespace tokamak::node

// Small objects that come with the directory's answer, in one round trip.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/directory/directory.h"
#include "lib/node/pulls/bundles.h"
#include "tests/node/node_fixture.h"

namespace tokamak::node {
namespace {

using base::Seconds;
using transport::Protocol;

class BroughtObjectTest : public NodeTest {
 protected:
  uint64_t Brought(size_t i) { return at(i).node().pulls().counters().brought; }
};

// The first host has the directory.
TEST_F(BroughtObjectTest, AnObjectOfTheDirectorysNodeIsBroughtAndNotPulled) {
  Build(2);
  Put(0, "x", 1000, 24);
  EXPECT_EQ(cluster_->Get(at(1), "x"), absl::OkStatus());
  EXPECT_EQ(Brought(1), 1u);
  EXPECT_EQ(at(1).node().pulls().counters().pulled, 1u);
  EXPECT_EQ(at(0).node().brought_to_peers_total(), 1u);
  EXPECT_EQ(at(0).node().pins_of_peers_total(), 0u);
  EXPECT_EQ(GenerationOn(1, "x"), GenerationOn(0, "x"));
  cluster_->Settle();
  EXPECT_EQ(Holders("x"), (std::vector<directory::NodeId>{"n0", "n1"}));
}

TEST_F(BroughtObjectTest, LargerForeignAndExplicitlyPulledObjectsAreNotBrought) {
  Build(3);
  Put(0, "large", directory::kMaxBrought + 1);
  Put(1, "elsewhere", 100);
  Put(0, "by read", 100);
  EXPECT_EQ(cluster_->Get(at(2), "large"), absl::OkStatus());
  EXPECT_EQ(cluster_->Get(at(2), "elsewhere"), absl::OkStatus());
  EXPECT_EQ(cluster_->Get(at(2), "by read", By(Protocol::kRead)), absl::OkStatus());
  EXPECT_EQ(Brought(2), 0u);
  EXPECT_EQ(at(2).node().pulls().counters().pulled, 3u);
}

TEST_F(BroughtObjectTest, ADeletionFindsABroughtObject) {
  Build(2);
  Put(0, "x", 100);
  EXPECT_EQ(cluster_->Get(at(1), "x"), absl::OkStatus());
  EXPECT_EQ(Brought(1), 1u);
  std::optional<absl::StatusOr<uint32_t>> deleted;
  const base::Pending call =
      at(0).node().Delete(Id("x"), [&](const absl::StatusOr<uint32_t>& copies) { deleted = copies; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return deleted.has_value(); }));
  EXPECT_EQ(**deleted, 2u);
  EXPECT_EQ(GenerationOn(1, "x"), base::kNoGeneration);
}

TEST_F(BroughtObjectTest, AnObjectThatItsNodeLostIsPulledFromAnother) {
  Build(3);
  Put(0, "x", 100);
  ASSERT_EQ(cluster_->Get(at(1), "x"), absl::OkStatus());
  cluster_->Settle();
  ASSERT_EQ(at(0).store().Delete(Id("x")), absl::OkStatus());
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  EXPECT_EQ(Brought(2), 0u);
}

// Pulls from a known place.
class KnownPlaceTest : public BroughtObjectTest {
 protected:
  // The third node knows that the second one has it.
  void Know(const std::string& name, uint64_t size) {
    Build(3);
    Put(1, name, size, 10);
    ASSERT_EQ(cluster_->Get(at(2), name), absl::OkStatus());
    ASSERT_EQ(at(2).store().Delete(Id(name)), absl::OkStatus());
    cluster_->Settle();
    ASSERT_EQ(Brought(2), 0u);
  }
  void CutDirectoryFrom(size_t i) { cluster_->network.Cut(at(i).address, at(0).address); }
};

TEST_F(KnownPlaceTest, AKnownHolderBringsTheObjectWithoutTheDirectory) {
  Know("x", 1000);
  CutDirectoryFrom(2);
  const base::Time asked = cluster_->time.Now();
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  EXPECT_LT(cluster_->time.Now() - asked, base::Milliseconds(1));
  EXPECT_EQ(Brought(2), 1u);
  EXPECT_EQ(at(2).node().pulls().counters().vouched_for, 1u);
  EXPECT_EQ(GenerationOn(2, "x"), GenerationOn(1, "x"));
  cluster_->network.Heal();
  cluster_->Settle();
  EXPECT_EQ(Holders("x"), (std::vector<directory::NodeId>{"n1", "n2"}));
}

TEST_F(KnownPlaceTest, ADeletionReachesACopyThroughItsHolder) {
  Know("x", 1000);
  CutDirectoryFrom(2);
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  std::optional<absl::StatusOr<uint32_t>> deleted;
  const base::Pending call =
      at(1).node().Delete(Id("x"), [&](const absl::StatusOr<uint32_t>& copies) { deleted = copies; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return deleted.has_value(); }));
  EXPECT_TRUE(deleted->ok()) << deleted->status();
  EXPECT_EQ(GenerationOn(2, "x"), base::kNoGeneration);
  cluster_->network.Heal();
  cluster_->Settle();
}

// Nobody would tell it of deletions.
TEST_F(KnownPlaceTest, ANodeThatHasLeftBringsNothing) {
  Know("x", 1000);
  bool left = false;
  at(1).node().Leave([&](const absl::Status& status) { left = status.ok(); });
  ASSERT_TRUE(cluster_->RunUntil([&] { return left; }));
  EXPECT_TRUE(absl::IsNotFound(cluster_->Get(at(2), "x", Within(Seconds(1)))));
  EXPECT_EQ(Brought(2), 0u);
}

TEST_F(KnownPlaceTest, ADeletionOfAnEnteredCopyDoesNotGoThroughItsHolder) {
  Know("x", 1000);
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  EXPECT_EQ(Brought(2), 1u);
  cluster_->RunFor(Seconds(5));
  cluster_->network.Cut(at(1).address, at(2).address);
  std::optional<absl::StatusOr<uint32_t>> deleted;
  const base::Time asked = cluster_->time.Now();
  const base::Pending call =
      at(0).node().Delete(Id("x"), [&](const absl::StatusOr<uint32_t>& copies) { deleted = copies; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return deleted.has_value(); }));
  EXPECT_TRUE(deleted->ok()) << deleted->status();
  EXPECT_LT(cluster_->time.Now() - asked, Seconds(1));
  EXPECT_EQ(GenerationOn(2, "x"), base::kNoGeneration);
  cluster_->network.Heal();
  cluster_->Settle();
}

TEST_F(KnownPlaceTest, AnObjectThatHasGoneFromItsKnownPlaceIsLocated) {
  Know("x", 1000);
  ASSERT_EQ(cluster_->Get(at(0), "x"), absl::OkStatus());
  cluster_->Settle();
  ASSERT_EQ(at(1).store().Delete(Id("x")), absl::OkStatus());
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  EXPECT_EQ(Brought(2), 1u) << "by the directory's node, which has a copy";
  EXPECT_EQ(at(2).node().pulls().counters().vouched_for, 0u);
}

TEST_F(KnownPlaceTest, AHolderThatDoesNotAnswerSoonIsNotAwaited) {
  Know("x", 1000);
  ASSERT_EQ(cluster_->Get(at(0), "x"), absl::OkStatus());
  cluster_->Settle();
  cluster_->network.Cut(at(1).address, at(2).address);
  const base::Time asked = cluster_->time.Now();
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  EXPECT_LT(cluster_->time.Now() - asked, base::Milliseconds(60));
  cluster_->network.Heal();
}

TEST_F(KnownPlaceTest, ALargerObjectIsPulledWhileTheDirectoryEntersIt) {
  Know("x", directory::kMaxBrought);  // with its metadata it is larger
  EXPECT_EQ(cluster_->Get(at(2), "x"), absl::OkStatus());
  EXPECT_EQ(Brought(2), 0u);
}

// Several that one other node holds, and that are got at once.
class BundleTest : public BroughtObjectTest {
 protected:
  static constexpr int kObjects = 64;

  static std::string Name(int i) { return absl::StrCat("small", i); }
  // At the second.
  void PutAll(uint64_t size, uint64_t metadata, size_t hosts = 3) {
    Build(hosts);
    for (int i = 0; i < kObjects; ++i) Put(1, Name(i), size, metadata);
  }
  std::shared_ptr<sim::Got> GetAll() {
    std::vector<std::string> names;
    for (int i = 0; i < kObjects; ++i) names.push_back(Name(i));
    return at(2).StartGet(names, Within(Seconds(30)));
  }
  static size_t Right(const sim::Got& got) {
    return static_cast<size_t>(
        std::count_if(got.results.begin(), got.results.end(), [](const auto& r) { return r.location.has_value(); }));
  }
};

TEST_F(BundleTest, SmallObjectsAreRequestedTogetherAndComePacked) {
  PutAll(500, 24);
  const auto got = GetAll();
  cluster_->Await(got);
  EXPECT_EQ(Right(*got), size_t{kObjects});
  at(2).Release(*got);
  EXPECT_EQ(Brought(2), uint64_t{kObjects});
  EXPECT_EQ(at(1).node().pins_of_peers_total(), 0u) << "none was a transfer";
  const uint64_t per_reply = at(2).engine().max_call_size() / 600;
  EXPECT_LE(at(2).node().pulls().bundles_sent(), kObjects / per_reply + 1);
  for (int i = 0; i < kObjects; ++i) EXPECT_EQ(GenerationOn(2, Name(i)), GenerationOn(1, Name(i)));
  cluster_->Settle();
  EXPECT_EQ(Holders(Name(0)), (std::vector<directory::NodeId>{"n1", "n2"}));
}

TEST_F(BundleTest, EmptyAndLargestObjectsCome) {
  Build(3);
  Put(1, Name(0), 0);
  Put(1, Name(1), directory::kMaxBrought);
  Put(1, Name(2), directory::kMaxBrought + 1);
  const auto got = at(2).StartGet({Name(0), Name(1), Name(2)}, Within(Seconds(30)));
  cluster_->Await(got);
  EXPECT_EQ(Right(*got), 3u);
  at(2).Release(*got);
  EXPECT_EQ(Brought(2), 2u);
}

TEST_F(BundleTest, ObjectsThatTheHolderLostArePulledFromAnother) {
  PutAll(100, 0);
  ASSERT_EQ(cluster_->Get(at(0), Name(7)), absl::OkStatus());
  cluster_->Settle();
  ASSERT_EQ(at(1).store().Delete(Id(Name(7))), absl::OkStatus());
  const auto got = GetAll();
  cluster_->Await(got);
  EXPECT_EQ(Right(*got), size_t{kObjects});
  at(2).Release(*got);
}

TEST_F(BundleTest, AHolderThatIsCutOffIsAwaitedNoLongerThanACall) {
  PutAll(100, 0, 4);
  for (int i = 0; i < kObjects; ++i) ASSERT_EQ(cluster_->Get(at(3), Name(i)), absl::OkStatus());
  cluster_->Settle();
  cluster_->network.Cut(at(1).address, at(2).address);
  const auto got = GetAll();
  cluster_->Await(got);
  EXPECT_EQ(Right(*got), size_t{kObjects});
  at(2).Release(*got);
  cluster_->network.Heal();
  cluster_->Settle();
}

TEST_F(BundleTest, ADeletionFindsObjectsOnTheirWay) {
  PutAll(500, 24);
  const auto got = GetAll();
  std::optional<absl::StatusOr<uint32_t>> deleted;
  ASSERT_TRUE(cluster_->RunUntil([&] { return at(2).node().pulls().bundles_sent() > 0; }));
  const base::Pending call =
      at(0).node().Delete(Id(Name(3)), [&](const absl::StatusOr<uint32_t>& copies) { deleted = copies; });
  ASSERT_TRUE(cluster_->RunUntil([&] { return deleted.has_value(); }));
  EXPECT_TRUE(deleted->ok()) << deleted->status();
  EXPECT_EQ(GenerationOn(2, Name(3)), base::kNoGeneration);
  EXPECT_EQ(GenerationOn(1, Name(3)), base::kNoGeneration);
  cluster_->Await(got, Seconds(60));
  EXPECT_GE(Right(*got), size_t{kObjects - 1});
  at(2).Release(*got);
}

TEST_F(BundleTest, ADroppedGetLeavesNothing) {
  PutAll(500, 24);
  auto got = GetAll();
  ASSERT_TRUE(cluster_->RunUntil([&] { return at(2).node().pulls().bundles_sent() > 0; }));
  got->handle.reset();
  cluster_->Settle();
  EXPECT_EQ(at(2).node().pulls().running(), 0u);
}

TEST(BundlesTest, AnAnswerStaysWithinItsBound) {
  const std::vector<uint8_t> bytes(100, 7);
  std::vector<base::ObjectVersion> versions(10);
  const auto answer = Bundles::Answer(
      versions, 400, [&](const auto&) -> std::optional<uint64_t> { return bytes.size(); },
      [&](const auto&) { return absl::MakeConstSpan(bytes); });
  EXPECT_LE(answer.size(), 400u);
  EXPECT_GT(answer.size(), 300u);
}

}  // namespace
}  // namespace tokamak::node

// Gets and waits that answer later.
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

class StoreWaitsTest : public StoreTest {
 protected:
  std::unique_ptr<Handle> Get(std::vector<base::ObjectId> ids, base::Duration timeout) {
    return store_->GetLater(ids, In(timeout), bob_, [this](absl::Span<const GetEntry> entries) {
      ++answers_;
      entries_.assign(entries.begin(), entries.end());
    });
  }

  std::unique_ptr<Handle> Wait(std::vector<base::ObjectId> ids, size_t count, base::Duration timeout) {
    return store_->WaitLater(ids, count, In(timeout), [this](std::vector<bool> sealed) {
      ++answers_;
      sealed_ = std::move(sealed);
    });
  }

  uint64_t pins() const { return store_->statistics().pins; }

  int answers_ = 0;
  std::vector<GetEntry> entries_;
  std::vector<bool> sealed_;
};

TEST_F(StoreWaitsTest, AGetOfSealedObjectsAnswersSoonButNotInsideTheCall) {
  Put("x", 100);
  const auto handle = Get({Id("x")}, base::Seconds(1));
  EXPECT_EQ(answers_, 0);
  scheduler_.RunFor(base::Duration());
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(entries_[0].location, *store_->Find(Id("x")));
  EXPECT_EQ(pins(), 1u);
  EXPECT_EQ(store_->statistics().waiting, 0u);
}

TEST_F(StoreWaitsTest, AGetWaitsUntilAllAreSealed) {
  Put("x", 100);
  const auto handle = Get({Id("x"), Id("y")}, base::Seconds(1));
  scheduler_.RunFor(base::Milliseconds(500));
  EXPECT_EQ(answers_, 0);
  ASSERT_TRUE(Create("y", 100).ok());
  scheduler_.RunFor(base::Duration());
  EXPECT_EQ(answers_, 0);
  ASSERT_TRUE(store_->Seal(Id("y"), alice_).ok());
  scheduler_.RunFor(base::Duration());
  ASSERT_EQ(answers_, 1);
  EXPECT_TRUE(entries_[0].location.has_value() && entries_[1].location.has_value());
}

TEST_F(StoreWaitsTest, AGetAnswersAtItsDeadlineWithThePresentObjects) {
  Put("x", 100);
  const auto handle = Get({Id("y"), Id("x")}, base::Seconds(1));
  scheduler_.RunFor(base::Milliseconds(999));
  EXPECT_EQ(answers_, 0);
  scheduler_.RunFor(base::Milliseconds(1));
  ASSERT_EQ(answers_, 1);
  EXPECT_FALSE(entries_[0].location.has_value());
  EXPECT_TRUE(entries_[1].location.has_value());
  EXPECT_EQ(pins(), 1u);
}

TEST_F(StoreWaitsTest, AnAwaitedObjectIsPinnedAsItAppears) {
  Put("x", 100);
  const auto handle = Get({Id("x"), Id("y"), Id("z")}, base::Seconds(1));
  Put("y", 100);
  store_->Evict(kCapacity);
  EXPECT_TRUE(Has("x") && Has("y"));
}

TEST_F(StoreWaitsTest, DroppingAGetGivesItsPinsBack) {
  Put("x", 100);
  auto handle = Get({Id("x"), Id("y")}, base::Seconds(1));
  EXPECT_EQ(pins(), 1u);
  handle.reset();
  EXPECT_EQ(pins(), 0u);
  scheduler_.RunFor(base::Seconds(2));
  EXPECT_EQ(answers_, 0);
}

TEST_F(StoreWaitsTest, DroppingAGetThatIsAboutToAnswerGivesItsPinsBack) {
  Put("x", 100);
  auto handle = Get({Id("x")}, base::Seconds(1));
  handle.reset();
  scheduler_.RunFor(base::Seconds(2));
  EXPECT_EQ(answers_, 0);
  EXPECT_EQ(pins(), 0u);
}

TEST_F(StoreWaitsTest, AReleaseTakesNothingFromAGetThatWaits) {
  Put("a", 100);
  {
    const auto get =
        store_->GetLater({Id("a"), Id("b")}, In(base::Seconds(1)), bob_, [](absl::Span<const GetEntry>) { FAIL(); });
    EXPECT_EQ(store_->Release(Id("a"), bob_).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(store_->statistics().pins, 1u);
  }
  EXPECT_EQ(store_->statistics().pins, 0u);
}

TEST_F(StoreWaitsTest, AGetMayDropItselfInItsCallback) {
  Put("x", 100);
  std::unique_ptr<Handle> handle;
  handle = store_->GetLater({Id("x")}, In(base::Seconds(1)), bob_, [&](absl::Span<const GetEntry>) {
    handle.reset();
    ++answers_;
  });
  scheduler_.RunFor(base::Duration());
  EXPECT_EQ(answers_, 1);
  EXPECT_EQ(pins(), 1u) << "the answer's pins are the caller's";
}

TEST_F(StoreWaitsTest, AnIdThatIsAskedForTwiceIsPinnedTwice) {
  const auto handle = Get({Id("x"), Id("x")}, base::Seconds(1));
  Put("x", 100);
  scheduler_.RunFor(base::Duration());
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(pins(), 2u);
}

TEST_F(StoreWaitsTest, AGetOfNothingAnswersAtOnce) {
  const auto handle = Get({}, base::Seconds(1));
  scheduler_.RunFor(base::Duration());
  EXPECT_EQ(answers_, 1);
}

TEST_F(StoreWaitsTest, ManyGetsOfOneObjectAreAllServed) {
  const auto first = Get({Id("x")}, base::Seconds(1));
  const auto second = Get({Id("x")}, base::Seconds(1));
  Put("x", 100);
  scheduler_.RunFor(base::Duration());
  EXPECT_EQ(answers_, 2);
  EXPECT_EQ(pins(), 2u);
}

TEST_F(StoreWaitsTest, AGetDoesNotSeeAnObjectThatWasDeletedBefore) {
  Put("x", 100);
  ASSERT_TRUE(store_->Acquire(Id("x"), alice_).ok());
  ASSERT_TRUE(store_->Delete(Id("x")).ok());
  const auto handle = Get({Id("x")}, base::Seconds(1));
  scheduler_.RunFor(base::Seconds(1));
  EXPECT_FALSE(entries_[0].location.has_value());
}

TEST_F(StoreWaitsTest, ADeadOwnersGetsNeverAnswer) {
  Put("x", 100);
  const auto handle = Get({Id("x"), Id("y")}, base::Seconds(1));
  store_->DropOwner(bob_);
  Put("y", 100);
  scheduler_.RunFor(base::Seconds(2));
  EXPECT_EQ(answers_, 0);
  EXPECT_EQ(pins(), 0u);
}

TEST_F(StoreWaitsTest, AHandleThatOutlivesTheStoreIsInert) {
  Put("x", 100);
  auto handle = Get({Id("x"), Id("y")}, base::Seconds(1));
  store_.reset();
  scheduler_.RunFor(base::Seconds(2));
  EXPECT_EQ(answers_, 0);
  handle.reset();
}

TEST_F(StoreWaitsTest, AWaitAnswersWhenEnoughAreSealed) {
  Put("a", 100);
  const auto handle = Wait({Id("a"), Id("b"), Id("c")}, 2, base::Seconds(1));
  scheduler_.RunFor(base::Milliseconds(1));
  EXPECT_EQ(answers_, 0);
  Put("c", 100);
  scheduler_.RunFor(base::Duration());
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(sealed_, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(pins(), 0u);
}

TEST_F(StoreWaitsTest, AWaitReportsMoreObjectsThanItNeeds) {
  const auto handle = Wait({Id("a"), Id("b")}, 1, base::Seconds(1));
  Put("a", 100);
  Put("b", 100);
  scheduler_.RunFor(base::Duration());
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(sealed_, (std::vector<bool>{true, true}));
}

TEST_F(StoreWaitsTest, AWaitAnswersAtItsDeadlineWithTheObjectsSeen) {
  const auto handle = Wait({Id("a"), Id("b")}, 5, base::Seconds(1));
  Put("b", 100);
  scheduler_.RunFor(base::Seconds(1));
  ASSERT_EQ(answers_, 1);
  EXPECT_EQ(sealed_, (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace tokamak::store

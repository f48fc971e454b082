// Making room: what is evicted for a create, in which order, and when a create fails instead.
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

using testing::HasSubstr;

class StoreRoomTest : public StoreTest {
 protected:
  using StoreTest::StoreTest;
  static constexpr uint64_t kTenth = kCapacity / 10 / 64 * 64;

  void PutCopy(std::string_view name, uint64_t size) { Put(name, size, Origin::kPulled); }
};

TEST_F(StoreRoomTest, ACreateEvictsTheLeastRecentlyUsed) {
  PutCopy("old", kCapacity / 2);
  PutCopy("new", kCapacity / 2);
  ASSERT_TRUE(Create("x", kCapacity / 2).ok());
  EXPECT_FALSE(Has("old"));
  EXPECT_TRUE(Has("new"));
}

TEST_F(StoreRoomTest, ReadingAndTouchingKeepAnObject) {
  for (const char* name : {"a", "b", "c", "d"}) PutCopy(name, kCapacity / 4);
  ASSERT_TRUE(store_->Touch(Id("a")).ok());
  ASSERT_TRUE(store_->Acquire(Id("b"), bob_).ok());
  ASSERT_TRUE(store_->Release(Id("b"), bob_).ok());
  ASSERT_TRUE(Create("x", kCapacity / 4).ok());
  EXPECT_FALSE(Has("c"));
  EXPECT_TRUE(Has("a") && Has("b") && Has("d"));
}

TEST_F(StoreRoomTest, ObjectsCreatedHereAreKept) {
  Put("ours", kCapacity);
  const absl::Status status = Create("x", 100);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("the node itself has 64 KiB created and kept"));
  EXPECT_THAT(status.message(), HasSubstr("--cache"));
  EXPECT_EQ(store_->Evict(UINT64_MAX).objects, 0u);
  EXPECT_TRUE(Has("ours"));
}

TEST_F(StoreRoomTest, PulledCopiesAreEvictedAroundKeptObjects) {
  PutCopy("a", kCapacity / 4);
  Put("ours", kCapacity / 4);
  PutCopy("b", kCapacity / 2);
  ASSERT_TRUE(Create("x", kCapacity / 2).ok());
  EXPECT_TRUE(Has("a") && Has("ours"));
  EXPECT_FALSE(Has("b"));
}

TEST_F(StoreRoomTest, NothingIsEvictedAroundAPin) {
  std::vector<std::string> names;
  for (int i = 0; i < 25; ++i) names.push_back(std::to_string(i));
  for (const std::string& name : names) PutCopy(name, kCapacity / 25 / 64 * 64);
  ASSERT_TRUE(store_->Acquire(Id("12"), bob_).ok());
  EXPECT_EQ(Create("x", kCapacity * 18 / 25).code(), absl::StatusCode::kResourceExhausted);
  for (const std::string& name : names) EXPECT_TRUE(Has(name)) << name;

  ASSERT_TRUE(store_->Release(Id("12"), bob_).ok());
  EXPECT_TRUE(Create("x", kCapacity * 18 / 25).ok());
}

TEST_F(StoreRoomTest, TheRunUsedLongestAgoIsEvicted) {
  for (int i = 0; i < 8; ++i) PutCopy(std::to_string(i), kCapacity / 8);
  for (const char* even : {"0", "2", "4", "6"}) ASSERT_TRUE(store_->Touch(Id(even)).ok());
  // Each run of three has two of those touched, and the pair touched first is in this one.
  ASSERT_TRUE(Create("x", kCapacity / 8 * 3).ok());
  EXPECT_FALSE(Has("0") || Has("1") || Has("2"));
  for (const char* other : {"3", "4", "5", "6", "7"}) EXPECT_TRUE(Has(other)) << other;
}

TEST_F(StoreRoomTest, AnOldObjectStaysIfItsNeighbourAloneMakesTheRoom) {
  PutCopy("small", 64);
  PutCopy("large", kCapacity / 2);
  PutCopy("rest", kCapacity / 2 - 64);
  ASSERT_TRUE(Create("x", kCapacity / 2).ok());
  EXPECT_TRUE(Has("small") && Has("rest"));
  EXPECT_FALSE(Has("large"));
}

TEST_F(StoreRoomTest, FreeNeighboursArePartOfTheRoom) {
  PutCopy("a", kCapacity / 4);
  PutCopy("gap", kCapacity / 4);
  PutCopy("b", kCapacity / 4);
  Put("ours", kCapacity / 4);
  ASSERT_TRUE(store_->Delete(Id("gap")).ok());
  ASSERT_TRUE(Create("x", kCapacity / 2).ok());
  EXPECT_FALSE(Has("a"));
  EXPECT_TRUE(Has("b") && Has("ours"));
}

TEST_F(StoreRoomTest, PinnedAndUnsealedObjectsAreNotEvicted) {
  Put("pinned", kCapacity / 2);
  ASSERT_TRUE(store_->Acquire(Id("pinned"), bob_).ok());
  ASSERT_TRUE(Create("unsealed", kCapacity / 2).ok());
  const absl::Status status = Create("x", 100);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("release or delete"));
  EXPECT_EQ(store_->statistics().creates_refused, 1u);
}

TEST_F(StoreRoomTest, AnObjectPinnedHereIsNotEvictedUntilUnpinnedOrDeleted) {
  Put("a", kCapacity / 2, Origin::kPulled);
  Put("b", kCapacity / 2, Origin::kPulled);
  ASSERT_TRUE(store_->PinHere(Id("a")).ok());
  EXPECT_TRUE(store_->PinHere(Id("a")).ok()) << "it is pinned once";
  EXPECT_TRUE(store_->Stat(Id("a"))->pinned_here);
  store_->DropOwner(alice_);
  EXPECT_EQ(store_->Evict(kCapacity).objects, 1u);
  EXPECT_TRUE(Has("a"));
  ASSERT_TRUE(store_->UnpinHere(Id("a")).ok());
  EXPECT_TRUE(store_->UnpinHere(Id("a")).ok());
  EXPECT_EQ(store_->Evict(kCapacity).objects, 1u);
  EXPECT_TRUE(absl::IsNotFound(store_->PinHere(Id("a"))));
  EXPECT_TRUE(absl::IsNotFound(store_->UnpinHere(Id("a"))));

  alice_ = store_->NewOwner();
  Put("c", 1000);
  ASSERT_TRUE(store_->PinHere(Id("c")).ok());
  ASSERT_TRUE(store_->Acquire(Id("c"), bob_).ok());
  ASSERT_TRUE(store_->Delete(Id("c")).ok());
  EXPECT_EQ(store_->statistics().pins, 1u) << "the reader's";
  ASSERT_TRUE(store_->Release(Id("c"), bob_).ok());
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
}

TEST_F(StoreRoomTest, NothingIsEvictedInVain) {
  Put("pinned", kCapacity / 2);
  ASSERT_TRUE(store_->Acquire(Id("pinned"), bob_).ok());
  PutCopy("victim", 1000);
  EXPECT_EQ(Create("x", kCapacity / 2 + 64).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Has("victim"));
}

TEST_F(StoreRoomTest, AnObjectLargerThanTheStoreNamesTheRemedy) {
  Put("innocent", 100);
  for (const uint64_t size : {kCapacity + 1, UINT64_MAX}) {
    const absl::Status status = Create("x", size);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(status.message(), HasSubstr("--memory"));
  }
  EXPECT_EQ(store_->CreateCopy({Id("x"), base::Generation{7}}, kCapacity, kCapacity, alice_).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Has("innocent"));
}

TEST_F(StoreRoomTest, EvictFreesTheRequestedBytesOrEverything) {
  for (int i = 0; i < 10; ++i) PutCopy(std::to_string(i), kTenth);
  EXPECT_EQ(store_->Evict(0).objects, 0u);
  EXPECT_EQ(store_->Evict(kTenth + 1).objects, 2u);
  EXPECT_EQ(store_->Evict(UINT64_MAX).objects, 8u);
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
}

TEST_F(StoreRoomTest, AvailableCountsFreeAndEvictableMemory) {
  PutCopy("evictable", kTenth);
  Put("pinned", kTenth);
  ASSERT_TRUE(store_->Acquire(Id("pinned"), bob_).ok());
  EXPECT_EQ(store_->available_bytes(), kCapacity - kTenth);
}

class CacheTest : public StoreRoomTest {
 protected:
  CacheTest() : StoreRoomTest(MakeOptions()) {}
  static Options MakeOptions() {
    Options options;
    options.cache = true;
    return options;
  }
};

TEST_F(CacheTest, PulledCopiesGoBeforeOlderObjectsCreatedHere) {
  Put("ours", kCapacity / 2);
  PutCopy("copy", kCapacity / 2);
  ASSERT_TRUE(Create("x", 100).ok());
  EXPECT_TRUE(Has("ours"));
  EXPECT_FALSE(Has("copy"));
  EXPECT_EQ(store_->statistics().evicted_pulled.objects, 1u);
  EXPECT_EQ(store_->statistics().evicted_created_here.objects, 0u);
}

TEST_F(CacheTest, EvictionsOfObjectsCreatedHereAreCountedApart) {
  Put("ours", kCapacity);
  ASSERT_TRUE(Create("x", 100).ok());
  EXPECT_EQ(store_->statistics().evicted_created_here.objects, 1u);
  EXPECT_EQ(store_->statistics().evicted_created_here.bytes, kCapacity);
}

TEST_F(CacheTest, TheLeastRecentlyUsedObjectCreatedHereGoes) {
  for (const char* name : {"a", "b", "c", "d"}) Put(name, kCapacity / 4);
  ASSERT_TRUE(store_->Touch(Id("a")).ok());
  ASSERT_TRUE(Create("x", kCapacity / 4).ok());
  EXPECT_FALSE(Has("b"));
  EXPECT_TRUE(Has("a") && Has("c") && Has("d"));
}

TEST_F(CacheTest, BothKindsGoIfOnlyTogetherTheyMakeTheRoom) {
  PutCopy("copy", kCapacity / 2);
  Put("ours", kCapacity / 2);
  ASSERT_TRUE(Create("x", kCapacity).ok());
  EXPECT_EQ(store_->statistics().evicted_pulled.objects, 1u);
  EXPECT_EQ(store_->statistics().evicted_created_here.objects, 1u);
}

class OnFreeTest : public StoreRoomTest {
 protected:
  OnFreeTest() : StoreRoomTest(MakeOptions()) {}
  Options MakeOptions() {
    Options options;
    options.on_free = [this](uint64_t offset, uint64_t size) { freed_.emplace_back(offset, size); };
    return options;
  }
  std::vector<std::pair<uint64_t, uint64_t>> freed_;
};

TEST_F(OnFreeTest, EveryFreedRangeIsReportedOnceItIsUnpinned) {
  Put("x", 100);
  const Location location = *store_->Acquire(Id("x"), bob_);
  ASSERT_TRUE(store_->Delete(Id("x")).ok());
  EXPECT_TRUE(freed_.empty());
  ASSERT_TRUE(store_->Release(Id("x"), bob_).ok());
  ASSERT_EQ(freed_.size(), 1u);
  EXPECT_EQ(freed_[0], std::make_pair(location.offset, uint64_t{128}));
}

}  // namespace
}  // namespace tokamak::store

// Memory that a program which is gone may still write to: held back, never another object's, and
// given back when asked.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

using testing::HasSubstr;

class StoreQuarantineTest : public StoreTest {
 protected:
  StoreQuarantineTest() : keeper_(store_->NewOwner()) {}

  uint64_t held() const { return store_->statistics().quarantined_bytes; }

  const Owner keeper_;
};

TEST_F(StoreQuarantineTest, MemoryOfAnAbandonedObjectIsNotGivenOut) {
  const auto place = store_->Create(Id("half"), kCapacity / 2, 0, alice_);
  ASSERT_TRUE(place.ok());
  ASSERT_TRUE(store_->AbandonOwner(alice_, keeper_));
  EXPECT_EQ(held(), kCapacity / 2);
  EXPECT_EQ(store_->CheckConsistency(), absl::OkStatus());
  const absl::Status refused = store_->Create(Id("x"), kCapacity / 2 + 64, 0, bob_).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(refused.message(), HasSubstr("lost their connection"));
  const auto other = store_->Create(Id("other"), kCapacity / 2, 0, bob_);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->offset, place->offset);
  store_->EndQuarantine(keeper_);
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(store_->Create(Id("x"), kCapacity / 2, 0, bob_).ok());
}

TEST_F(StoreQuarantineTest, TheIdIsFreeAtOnce) {
  ASSERT_TRUE(Create("a", 100).ok());
  ASSERT_TRUE(store_->AbandonOwner(alice_, keeper_));
  EXPECT_TRUE(absl::IsNotFound(store_->Stat(Id("a")).status()));
  ASSERT_TRUE(store_->Create(Id("a"), 100, 0, bob_).ok());
  EXPECT_EQ(store_->statistics().aborted, 1u);
  EXPECT_EQ(store_->statistics().lost(), 0);
}

TEST_F(StoreQuarantineTest, AnAbandonedOwnersSealedObjectsStayAndItsPinsEnd) {
  Put("sealed", 100);
  ASSERT_TRUE(store_->Acquire(Id("sealed"), alice_).ok());
  EXPECT_FALSE(store_->AbandonOwner(alice_, keeper_));
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(Has("sealed"));
  EXPECT_EQ(store_->statistics().pins, 0u);
}

TEST_F(StoreQuarantineTest, AKeeperMayKeepForSeveralOwners) {
  ASSERT_TRUE(Create("a", 100).ok());
  ASSERT_TRUE(store_->Create(Id("b"), 100, 0, bob_).ok());
  ASSERT_TRUE(store_->AbandonOwner(alice_, keeper_));
  ASSERT_TRUE(store_->AbandonOwner(bob_, keeper_));
  EXPECT_EQ(held(), 256u);
  store_->EndQuarantine(keeper_);
  EXPECT_EQ(held(), 0u);
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
}

TEST_F(StoreQuarantineTest, MemoryThatIsAlsoPinnedWaitsForThePinToo) {
  ASSERT_TRUE(Create("a", 100).ok());
  ASSERT_TRUE(store_->Pin(Id("a"), bob_).ok());
  ASSERT_TRUE(store_->AbandonOwner(alice_, keeper_));
  ASSERT_TRUE(store_->Release(Id("a"), bob_).ok());
  EXPECT_EQ(held(), 128u);
  store_->EndQuarantine(keeper_);
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
}

TEST_F(StoreQuarantineTest, APinThatOutlivesTheQuarantineFreesTheMemory) {
  ASSERT_TRUE(Create("a", 100).ok());
  ASSERT_TRUE(store_->Pin(Id("a"), bob_).ok());
  ASSERT_TRUE(store_->AbandonOwner(alice_, keeper_));
  store_->EndQuarantine(keeper_);
  EXPECT_EQ(store_->statistics().used_bytes, 128u);
  ASSERT_TRUE(store_->Release(Id("a"), bob_).ok());
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
}

}  // namespace
}  // namespace tokamak::store

// A node's memory of where objects were.
#include "lib/node/pulls/location_cache.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::node {
namespace {

using Holders = std::vector<directory::NodeId>;

class LocationCacheTest : public testing::Test {
 protected:
  static base::ObjectId Id(size_t n) { return base::ObjectId::FromName(std::to_string(n)); }
  static directory::LocatedObject At(const Holders& holders, uint64_t generation = 1) {
    return {base::Generation{generation}, 100, 3, holders};
  }

  base::Time now_ = base::Time() + base::Seconds(100);
  LocationCache cache_;
};

TEST_F(LocationCacheTest, TheOtherHolderStaysWhenOneHasTheObjectNoLonger) {
  cache_.Remember(Id(1), At({"a", "b"}), now_);
  cache_.ForgetHolder(Id(1), "a");
  ASSERT_NE(cache_.Find(Id(1)), nullptr);
  EXPECT_EQ(cache_.Find(Id(1))->holders, Holders{"b"});
  cache_.ForgetHolder(Id(1), "c");
  EXPECT_EQ(cache_.Find(Id(1))->holders, Holders{"b"});
  cache_.ForgetHolder(Id(1), "b");
  EXPECT_EQ(cache_.Find(Id(1)), nullptr) << "a place without a holder is none";
  cache_.ForgetHolder(Id(2), "a");
  EXPECT_EQ(cache_.size(), 0u);
}

TEST_F(LocationCacheTest, AnEntryIsFreshForATimeAndKnownAfterwards) {
  cache_.Remember(Id(1), At({"a"}), now_);
  EXPECT_NE(cache_.FindFresh(Id(1), now_ + LocationCache::kFresh), nullptr);
  EXPECT_EQ(cache_.FindFresh(Id(1), now_ + LocationCache::kFresh + base::Nanoseconds(1)), nullptr);
  EXPECT_NE(cache_.Find(Id(1)), nullptr);
  cache_.Remember(Id(1), At({"a"}), now_ + base::Seconds(5));
  EXPECT_NE(cache_.FindFresh(Id(1), now_ + base::Seconds(5)), nullptr);
}

TEST_F(LocationCacheTest, TheLatestEntryCounts) {
  cache_.Remember(Id(1), At({"a"}, 1), now_);
  cache_.Remember(Id(1), At({"b"}, 2), now_);
  EXPECT_EQ(cache_.Find(Id(1))->generation, base::Generation{2});
  EXPECT_EQ(cache_.Find(Id(1))->holders, Holders{"b"});
  cache_.Forget(Id(1));
  EXPECT_EQ(cache_.Find(Id(1)), nullptr);
}

TEST_F(LocationCacheTest, TheOldestEntryGoesBeyondTheBound) {
  constexpr size_t kMost = LocationCache::kMaxEntries;
  for (size_t i = 0; i < kMost; ++i) cache_.Remember(Id(i), At({"a"}), now_);
  cache_.Remember(Id(0), At({"b"}), now_);  // now 1 is the oldest
  cache_.Remember(Id(kMost), At({"a"}), now_);
  EXPECT_EQ(cache_.size(), kMost);
  EXPECT_NE(cache_.Find(Id(0)), nullptr);
  EXPECT_EQ(cache_.Find(Id(1)), nullptr);
  EXPECT_NE(cache_.Find(Id(2)), nullptr);
}

// The order has a bound of its own: an object that is asked for again and again has one place in it
// that counts.
TEST_F(LocationCacheTest, AnEntryThatIsRememberedManyTimesTakesOnePlace) {
  cache_.Remember(Id(1), At({"a"}), now_);
  for (size_t i = 0; i < 3 * LocationCache::kMaxEntries; ++i) cache_.Remember(Id(2), At({"a"}), now_);
  EXPECT_NE(cache_.Find(Id(2)), nullptr);
  EXPECT_LE(cache_.size(), 2u);
}

}  // namespace
}  // namespace tokamak::node

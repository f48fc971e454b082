#include "lib/store/eviction.h"

#include <deque>

#include "gtest/gtest.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

class EvictionOrderTest : public testing::Test {
 protected:
  Object& Sealed(Origin origin, uint64_t bytes = 64) {
    Object& object = objects_.emplace_back();
    object.info.id = Id(std::to_string(objects_.size()));
    object.info.state = State::kSealed;
    object.info.origin = origin;
    object.allocation.size = bytes;
    object.allocation.block = static_cast<uint32_t>(objects_.size());
    return object;
  }

  std::deque<Object> objects_;
};

TEST_F(EvictionOrderTest, OffersNothingWhenEmpty) { EXPECT_EQ(EvictionOrder(/*cache=*/true).Next(), nullptr); }

TEST_F(EvictionOrderTest, OffersTheLeastRecentlyUsedFirst) {
  EvictionOrder order(/*cache=*/true);
  Object &a = Sealed(Origin::kPulled), &b = Sealed(Origin::kPulled);
  order.Add(a);
  order.Add(b);
  EXPECT_EQ(order.Next(), &a);
  order.Touch(a);
  EXPECT_EQ(order.Next(), &b);
  order.Remove(b);
  EXPECT_EQ(order.Next(), &a);
  EXPECT_EQ(order.CheckConsistency(), absl::OkStatus());
}

TEST_F(EvictionOrderTest, OffersPulledCopiesBeforeOlderObjectsCreatedHere) {
  EvictionOrder order(/*cache=*/true);
  Object &ours = Sealed(Origin::kCreatedHere), &copy = Sealed(Origin::kPulled);
  order.Add(ours);
  order.Add(copy);
  EXPECT_EQ(order.Next(), &copy);
  order.Remove(copy);
  EXPECT_EQ(order.Next(), &ours);
}

TEST_F(EvictionOrderTest, OnlyACacheOffersObjectsCreatedHere) {
  EvictionOrder order(/*cache=*/false);
  Object &ours = Sealed(Origin::kCreatedHere), &copy = Sealed(Origin::kPulled, 128);
  order.Add(ours);
  order.Add(copy);
  EXPECT_EQ(order.evictable_bytes(), 128u);
  order.Remove(copy);
  EXPECT_EQ(order.Next(), nullptr);
  EXPECT_EQ(order.evictable_bytes(), 0u);
}

TEST_F(EvictionOrderTest, RemovesFromTheMiddle) {
  EvictionOrder order(/*cache=*/true);
  Object &a = Sealed(Origin::kPulled), &b = Sealed(Origin::kPulled), &c = Sealed(Origin::kPulled);
  for (Object* object : {&a, &b, &c}) order.Add(*object);
  order.Remove(b);
  EXPECT_EQ(order.CheckConsistency(), absl::OkStatus());
  order.Remove(a);
  EXPECT_EQ(order.Next(), &c);
}

TEST_F(EvictionOrderTest, APinnedObjectIsACheck) {
  EvictionOrder order(/*cache=*/true);
  Object& object = Sealed(Origin::kPulled);
  object.info.pins = 1;
  EXPECT_DEATH(order.Add(object), "");
}

}  // namespace
}  // namespace tokamak::store

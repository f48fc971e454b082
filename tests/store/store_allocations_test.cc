// The first steps of every get cost little or nothing: looking for an object, mostly for one that
// is not here, and waiting. And a put without a name pays for none.
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"
#include "tests/support/allocations.h"

namespace tokamak::store {
namespace {

using support::Allocations;

TEST_F(StoreTest, LookingForAnObjectAllocatesNothing) {
  Put("here", 100);
  ASSERT_TRUE(Create("unsealed", 100).ok());
  const base::ObjectId here = Id("here"), unsealed = Id("unsealed"), missing = Id("missing");
  const int64_t before = Allocations();
  const bool found_here = store_->Find(here).has_value();
  const bool found_unsealed = store_->Contains(unsealed), found_missing = store_->Find(missing).has_value();
  const bool acquired = store_->AcquireIfHere(missing, alice_).has_value();
  EXPECT_EQ(Allocations(), before);
  EXPECT_TRUE(found_here);
  EXPECT_FALSE(found_unsealed);
  EXPECT_FALSE(found_missing);
  EXPECT_FALSE(acquired);
}

TEST_F(StoreTest, AllocationsAreCounted) {
  const int64_t before = Allocations();
  EXPECT_FALSE(store_->Acquire(Id("missing"), alice_).ok());  // with a text
  EXPECT_GT(Allocations(), before);
}

// The handle, its place among those that lack something, and the tree of pins, which is empty
// otherwise, with one and with two.
TEST_F(StoreTest, AGetThatWaitsTakesFewAllocations) {
  constexpr int64_t kMost = 4;
  const std::vector<base::ObjectId> ids = {Id("x")};
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(Create("x", 100).ok());
    const base::Time deadline = In(base::Seconds(1));
    size_t answered = 0;
    const int64_t before = Allocations();
    const auto get = store_->GetLater(ids, deadline, bob_, [&](absl::Span<const GetEntry> entries) {
      for (const GetEntry& entry : entries) answered += entry.location.has_value();
    });
    const absl::Status sealed = store_->Seal(ids[0], alice_);
    scheduler_.RunUntil([&] { return answered > 0; }, deadline);
    const int64_t taken = Allocations() - before;
    EXPECT_TRUE(sealed.ok());
    EXPECT_EQ(answered, 1u);
    EXPECT_TRUE(taken <= kMost || round == 0) << taken;  // the first makes the loop's room
    EXPECT_TRUE(store_->Release(ids[0], bob_).ok());
    EXPECT_TRUE(store_->Delete(ids[0]).ok());
  }
}

// A name's bytes in the record, and in the event that is made of it.
TEST_F(StoreTest, AnObjectWithoutANameTakesNoMemoryForOne) {
  const base::ObjectId id = Id("x");
  const SmallObject unnamed = {id, AsBytes("1"), {}};
  const SmallObject named = {id, AsBytes("1"), {}, Name("x")};
  const auto taken_by = [&](const SmallObject& object) {
    const int64_t before = Allocations();
    const bool put = store_->CreateAndSeal(object, alice_).ok();
    const int64_t taken = Allocations() - before;
    EXPECT_TRUE(put && store_->Delete(id).ok());
    return taken;
  };
  taken_by(unnamed);  // makes the trees' room
  const int64_t without = taken_by(unnamed);
  EXPECT_EQ(taken_by(named), without + 2);
  EXPECT_EQ(taken_by(unnamed), without);
}

}  // namespace
}  // namespace tokamak::store

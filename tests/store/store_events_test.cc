// Later answers of the store: events to subscribers, and hashes.
#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/bytes.h"
#include "lib/store/hash.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

class StoreEventsTest : public StoreTest {
 protected:
  std::unique_ptr<Handle> Subscribe() {
    return store_->Subscribe([this](absl::Span<const Event> events) {
      ++deliveries_;
      events_.insert(events_.end(), events.begin(), events.end());
    });
  }

  int deliveries_ = 0;
  std::vector<Event> events_;
};

TEST_F(StoreEventsTest, ASubscriberHearsEventsInOrder) {
  const auto subscription = Subscribe();
  Put("x", 100);
  Put("y", 50, Origin::kPulled);
  ASSERT_TRUE(store_->Delete(Id("x")).ok());
  store_->Evict(1);
  EXPECT_EQ(deliveries_, 0) << "never inside the call";
  scheduler_.RunFor(base::Duration());

  EXPECT_EQ(deliveries_, 1);
  ASSERT_EQ(events_.size(), 4u);
  EXPECT_EQ(events_[0].kind, Event::Kind::kSealed);
  EXPECT_EQ(events_[0].data_size, 100u);
  EXPECT_EQ(events_[1].origin, Origin::kPulled);
  EXPECT_EQ(events_[2].kind, Event::Kind::kDeleted);
  EXPECT_EQ(events_[2].id, Id("x"));
  EXPECT_EQ(events_[3].kind, Event::Kind::kEvicted);
  EXPECT_EQ(events_[3].id, Id("y"));
}

TEST_F(StoreEventsTest, AnEventHasTheNameOfItsObjectEvenWhenThatIsGone) {
  const auto subscription = Subscribe();
  ASSERT_TRUE(store_->CreateAndSeal({Id("x"), AsBytes("1"), {}, Name("x")}, alice_).ok());
  Put("unnamed", 100);
  ASSERT_TRUE(store_->Delete(Id("x")).ok());
  scheduler_.RunUntilIdle();
  ASSERT_EQ(events_.size(), 3u);
  EXPECT_EQ(events_[0].name.text(), "x");
  EXPECT_TRUE(events_[1].name.empty());
  EXPECT_EQ(events_[2].kind, Event::Kind::kDeleted);
  EXPECT_EQ(events_[2].name.text(), "x");
}

TEST_F(StoreEventsTest, AnUnsealedObjectCausesNoEvent) {
  const auto subscription = Subscribe();
  ASSERT_TRUE(Create("x", 100).ok());
  ASSERT_TRUE(store_->Abort(Id("x"), alice_).ok());
  scheduler_.RunFor(base::Duration());
  EXPECT_TRUE(events_.empty());
}

TEST_F(StoreEventsTest, ADroppedSubscriberHearsNothingMore) {
  auto subscription = Subscribe();
  Put("x", 100);
  subscription.reset();
  scheduler_.RunFor(base::Duration());
  EXPECT_TRUE(events_.empty());
}

TEST_F(StoreEventsTest, ASubscriberMayDropItselfInItsCallback) {
  int heard = 0;
  std::unique_ptr<Handle> subscription;
  subscription = store_->Subscribe([&](absl::Span<const Event> events) {
    subscription.reset();
    heard += static_cast<int>(events.size());
  });
  Put("x", 100);
  Put("y", 100);
  scheduler_.RunFor(base::Duration());
  Put("z", 100);
  scheduler_.RunFor(base::Duration());
  EXPECT_EQ(heard, 2);
}

TEST_F(StoreEventsTest, ASubscriptionThatOutlivesTheStoreIsInert) {
  auto subscription = Subscribe();
  Put("x", 100);
  store_.reset();
  scheduler_.RunFor(base::Duration());
  EXPECT_TRUE(events_.empty());
}

class StoreHashTest : public StoreTest {
 protected:
  StoreHashTest() : large_(kLarge) {
    store_ = std::make_unique<Store>(absl::MakeSpan(large_[0].bytes, kLarge * kBlock), Options(), loop_, trace_);
    alice_ = store_->NewOwner();
  }

  std::unique_ptr<Handle> Hash(std::string_view name) {
    return store_->HashLater(Id(name), alice_, [this](absl::StatusOr<uint64_t> hash) { hash_ = std::move(hash); });
  }

  static constexpr size_t kLarge = 4 * base::kMaxCopyPerTask / kBlock;
  std::vector<Block> large_;
  std::optional<absl::StatusOr<uint64_t>> hash_;
};

TEST_F(StoreHashTest, HashesDataAndMetadata) {
  ASSERT_TRUE(
      store_->CreateAndSeal({Id("x"), AsBytes("Nobody inspects "), AsBytes("the spammish repetition")}, alice_).ok());
  const auto handle = Hash("x");
  scheduler_.RunUntilIdle();
  ASSERT_TRUE(hash_.has_value() && hash_->ok());
  EXPECT_EQ(**hash_, 0xfbcea83c8a378bf1u);
}

TEST_F(StoreHashTest, ALargeObjectIsHashedInManyTasksAndPinnedMeanwhile) {
  const Location location =
      *store_->CreateCopy({Id("x"), base::Generation{7}}, 3 * base::kMaxCopyPerTask + 1, 5, alice_);
  std::fill(store_->Memory(location).begin(), store_->Memory(location).end(), uint8_t{7});
  StreamHash expected;
  expected.Add(store_->Bytes(location));
  ASSERT_TRUE(store_->Seal(Id("x"), alice_).ok());

  const auto handle = Hash("x");
  EXPECT_TRUE(scheduler_.Step() && scheduler_.Step() && scheduler_.Step());
  EXPECT_FALSE(hash_.has_value());
  EXPECT_EQ(store_->Evict(1).objects, 0u);
  EXPECT_TRUE(scheduler_.Step());
  ASSERT_TRUE(hash_.has_value() && hash_->ok());
  EXPECT_EQ(**hash_, expected.hash());
  EXPECT_EQ(store_->Evict(1).objects, 1u);
}

TEST_F(StoreHashTest, AMissingObjectIsNotFound) {
  const auto handle = Hash("x");
  scheduler_.RunUntilIdle();
  ASSERT_TRUE(hash_.has_value());
  EXPECT_EQ(hash_->status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreHashTest, OtherTasksRunBetweenTheSlicesOfManyHashes) {
  ASSERT_TRUE(store_->CreateCopy({Id("x"), base::Generation{7}}, base::kMaxCopyPerTask, 0, alice_).ok());
  ASSERT_TRUE(store_->Seal(Id("x"), alice_).ok());
  int done = 0;
  std::vector<base::Pending> hashes;
  for (int i = 0; i < 4096; ++i) {
    hashes.push_back(store_->HashLater(Id("x"), alice_, [&](const absl::StatusOr<uint64_t>&) { ++done; }));
  }
  int done_before = -1;
  const base::Timer other = loop_.Post([&] { done_before = done; });
  scheduler_.RunUntil([&] { return done_before >= 0; }, In(base::Seconds(1)));
  EXPECT_LE(done_before, 1);
  scheduler_.RunUntil([&] { return done == 10; }, In(base::Seconds(1)));
  done_before = -1;
  const base::Timer later = loop_.Post([&] { done_before = done; });
  scheduler_.RunUntil([&] { return done_before >= 0; }, In(base::Seconds(1)));
  EXPECT_LE(done_before, 11);
}

TEST_F(StoreHashTest, AskersTakeTurnsSliceBySlice) {
  ASSERT_TRUE(store_->CreateCopy({Id("large"), base::Generation{7}}, 3 * base::kMaxCopyPerTask, 0, alice_).ok());
  ASSERT_TRUE(store_->Seal(Id("large"), alice_).ok());
  ASSERT_TRUE(store_->CreateAndSeal({Id("small"), AsBytes("text"), {}}, alice_).ok());
  std::string order;
  std::vector<base::Pending> hashes;
  const auto start = [&](std::string_view name, Owner who, const char* mark) {
    hashes.push_back(
        store_->HashLater(Id(name), who, [&order, mark](const absl::StatusOr<uint64_t>&) { order += mark; }));
  };
  start("large", alice_, "A");
  start("small", alice_, "a");
  start("small", bob_, "b");
  start("small", bob_, "B");
  scheduler_.RunUntilIdle();
  EXPECT_EQ(order, "bBAa") << "one hash of each at a time, in the order asked";
}

TEST_F(StoreHashTest, DroppingAHashGivesItsPinBack) {
  Put("x", 100);
  auto handle = Hash("x");
  handle.reset();
  scheduler_.RunUntilIdle();
  EXPECT_FALSE(hash_.has_value());
  EXPECT_EQ(store_->statistics().pins, 0u);
}

}  // namespace
}  // namespace tokamak::store

// One object's life: created, sealed, pinned, ended. Room and eviction: store_room_test; waiting:
// store_waits_test.
#include "lib/store/store.h"

#include "gtest/gtest.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

TEST_F(StoreTest, AnObjectIsInvisibleUntilSealed) {
  ASSERT_TRUE(Create("x", 100).ok());
  EXPECT_FALSE(Has("x"));
  EXPECT_EQ(store_->Acquire(Id("x"), bob_).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_->Seal(Id("x"), alice_).ok());
  EXPECT_TRUE(Has("x"));
}

TEST_F(StoreTest, MetadataIsTheTailOfTheData) {
  const Location location = *store_->Create(Id("x"), 100, 20, alice_);
  EXPECT_EQ(location.data_size, 100u);
  EXPECT_EQ(location.metadata_size, 20u);
  EXPECT_EQ(store_->Memory(location).size(), 120u);
  EXPECT_EQ(store_->Memory(location).data(), memory().data() + location.offset);
}

TEST_F(StoreTest, AnEmptyObjectIsAnObject) {
  Put("empty", 0);
  const Location location = *store_->Acquire(Id("empty"), bob_);
  EXPECT_EQ(location.total_size(), 0u);
}

TEST_F(StoreTest, TwoObjectsOfOneIdAreRefused) {
  ASSERT_TRUE(Create("x", 100).ok());
  EXPECT_EQ(Create("x", 100).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(store_->Seal(Id("x"), alice_).ok());
  EXPECT_EQ(Create("x", 100).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(StoreTest, OnlyTheCreatorMaySealOrAbort) {
  ASSERT_TRUE(Create("x", 100).ok());
  EXPECT_EQ(store_->Seal(Id("x"), bob_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_->Abort(Id("x"), bob_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(store_->Seal(Id("x"), alice_).ok());
}

TEST_F(StoreTest, ASealedObjectCanNeitherBeSealedNorAborted) {
  Put("x", 100);
  EXPECT_EQ(store_->Seal(Id("x"), alice_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_->Abort(Id("x"), alice_).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreTest, AnObjectThatDoesNotExistIsNotFound) {
  EXPECT_EQ(store_->Seal(Id("x"), alice_).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Abort(Id("x"), alice_).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Pin(Id("x"), alice_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Delete(Id("x")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Touch(Id("x")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Stat(Id("x")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, EveryCreateDrawsAGenerationThatItsReadersSee) {
  const Location first = *store_->Create(Id("x"), 100, 0, alice_);
  EXPECT_NE(first.generation, base::kNoGeneration);
  ASSERT_TRUE(store_->Seal(Id("x"), alice_).ok());
  EXPECT_EQ(store_->Find(Id("x")), first);
  EXPECT_EQ(*store_->Acquire(Id("x"), bob_), first);
  EXPECT_EQ(store_->Stat(Id("x"))->version(), (base::ObjectVersion{Id("x"), first.generation}));
  ASSERT_TRUE(store_->Release(Id("x"), bob_).ok());
  ASSERT_TRUE(store_->Delete(Id("x")).ok());

  const Location second = *store_->CreateAndSeal({Id("x"), AsBytes("another"), {}}, alice_);
  EXPECT_NE(second.generation, base::kNoGeneration);
  EXPECT_NE(second.generation, first.generation);
}

TEST_F(StoreTest, ANameIsKeptWithItsObjectAndCounted) {
  const base::ObjectName name = Name("weights/7"), small = Name("small"), copied = Name("copied");
  ASSERT_TRUE(store_->Create(Id("weights/7"), 100, 0, alice_, name).ok());
  ASSERT_TRUE(store_->CreateAndSeal({Id("small"), AsBytes("1"), {}, small}, alice_).ok());
  ASSERT_TRUE(store_->CreateCopy({Id("copied"), base::Generation{7}}, 100, 0, alice_, copied).ok());
  Put("unnamed", 100);
  EXPECT_EQ(store_->Stat(Id("weights/7"))->name, name);
  EXPECT_EQ(store_->Stat(Id("small"))->name, small);
  EXPECT_EQ(store_->Stat(Id("copied"))->name, copied);
  EXPECT_TRUE(store_->Stat(Id("unnamed"))->name.empty());
  size_t named = 0;
  for (const StoredObject& info : store_->List(10)) named += !info.name.empty();
  EXPECT_EQ(named, 3u);
  EXPECT_EQ(store_->statistics().name_bytes, name.memory() + small.memory() + copied.memory());

  ASSERT_TRUE(store_->Abort(Id("weights/7"), alice_).ok());
  ASSERT_TRUE(store_->Delete(Id("small")).ok());
  EXPECT_EQ(store_->statistics().name_bytes, copied.memory());
  Put("small", 100);
  EXPECT_TRUE(store_->Stat(Id("small"))->name.empty()) << "another object, which was put without";
}

TEST_F(StoreTest, StoresOfOtherStreamsDrawOtherGenerations) {
  Options options;
  options.random = base::Random(1);
  Store other(memory(), options, loop_, trace_);
  EXPECT_NE(other.Create(Id("x"), 100, 0, alice_)->generation, store_->Create(Id("x"), 100, 0, alice_)->generation);
}

TEST_F(StoreTest, ACopyHasTheGenerationOfItsOriginal) {
  const base::ObjectVersion version{Id("x"), base::Generation{99}};
  EXPECT_EQ(store_->CreateCopy(version, 100, 0, alice_)->generation, version.generation);
  EXPECT_EQ(store_->Stat(Id("x"))->version(), version);
  EXPECT_EQ(store_->Stat(Id("x"))->origin, Origin::kPulled);
  EXPECT_EQ(store_->CreateCopy({Id("y"), base::kNoGeneration}, 100, 0, alice_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(StoreTest, DeletingAVersionLeavesAnotherContentOfItsIdAlone) {
  const base::ObjectVersion version{Id("x"), base::Generation{99}}, earlier{Id("x"), base::Generation{98}};
  ASSERT_TRUE(store_->CreateCopy(version, 100, 0, alice_).ok());
  EXPECT_EQ(store_->DeleteVersion(version).code(), absl::StatusCode::kNotFound);  // not sealed yet: its puller ends it
  ASSERT_TRUE(store_->Seal(Id("x"), alice_).ok());

  EXPECT_EQ(store_->DeleteVersion(earlier).code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Has("x"));
  EXPECT_EQ(store_->DeleteVersion(version), absl::OkStatus());
  EXPECT_FALSE(Has("x"));
  EXPECT_EQ(store_->DeleteVersion(version).code(), absl::StatusCode::kNotFound);
}

TEST_F(StoreTest, AnAbortedObjectLeavesNothingBehind) {
  ASSERT_TRUE(Create("x", 100).ok());
  ASSERT_TRUE(store_->Abort(Id("x"), alice_).ok());
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
  EXPECT_TRUE(Create("x", 200).ok());
}

TEST_F(StoreTest, AnAbortedObjectWithAPinIsNotReusedBeforeRelease) {
  const Owner transfer = store_->NewOwner();
  const Location location = *store_->CreateCopy({Id("x"), base::Generation{7}}, 100, 0, transfer);
  ASSERT_TRUE(store_->Pin(Id("x"), transfer).ok());
  ASSERT_TRUE(store_->Abort(Id("x"), transfer).ok());

  EXPECT_EQ(store_->statistics().lingering_objects, 1u);
  EXPECT_EQ(store_->Pin(Id("x"), transfer).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Create("x", 100).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Create("y", 100).ok());
  EXPECT_NE(store_->Stat(Id("y"))->location.offset, location.offset);

  ASSERT_TRUE(store_->Release(Id("x"), transfer).ok());
  EXPECT_EQ(store_->statistics().lingering_objects, 0u);
  EXPECT_TRUE(Create("x", 100).ok());
}

TEST_F(StoreTest, ATransferMayPinSealAndRelease) {
  const Owner transfer = store_->NewOwner();
  ASSERT_TRUE(store_->CreateCopy({Id("x"), base::Generation{7}}, 100, 0, transfer).ok());
  ASSERT_TRUE(store_->Pin(Id("x"), transfer).ok());
  ASSERT_TRUE(store_->Seal(Id("x"), transfer).ok());
  EXPECT_EQ(store_->Evict(kCapacity).objects, 0u);
  ASSERT_TRUE(store_->Release(Id("x"), transfer).ok());
  EXPECT_EQ(store_->Evict(kCapacity).objects, 1u);
}

TEST_F(StoreTest, ADeletedObjectIsInvisibleAtOnceAndFreedWithItsLastPin) {
  Put("x", 100);
  ASSERT_TRUE(store_->Acquire(Id("x"), alice_).ok());
  ASSERT_TRUE(store_->Acquire(Id("x"), bob_).ok());
  ASSERT_TRUE(store_->Delete(Id("x")).ok());
  EXPECT_FALSE(Has("x"));
  EXPECT_EQ(store_->Delete(Id("x")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Stat(Id("x"))->state, State::kDeleted);

  ASSERT_TRUE(store_->Release(Id("x"), alice_).ok());
  EXPECT_NE(store_->statistics().used_bytes, 0u);
  ASSERT_TRUE(store_->Release(Id("x"), bob_).ok());
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
}

TEST_F(StoreTest, AnUnsealedObjectCannotBeDeleted) {
  ASSERT_TRUE(Create("x", 100).ok());
  EXPECT_EQ(store_->Delete(Id("x")).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreTest, AReleaseTooManyIsRefused) {
  Put("x", 100);
  ASSERT_TRUE(store_->Acquire(Id("x"), alice_).ok());
  EXPECT_EQ(store_->Release(Id("x"), bob_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(store_->Release(Id("x"), alice_).ok());
  EXPECT_EQ(store_->Release(Id("x"), alice_).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreTest, ADeadOwnerGivesBackPinsAndUnsealedObjects) {
  Put("read by both", 100);
  ASSERT_TRUE(Create("half", 100).ok());
  ASSERT_TRUE(store_->Acquire(Id("read by both"), alice_).ok());
  ASSERT_TRUE(store_->Acquire(Id("read by both"), alice_).ok());
  ASSERT_TRUE(store_->Acquire(Id("read by both"), bob_).ok());

  store_->DropOwner(alice_);
  EXPECT_EQ(store_->Stat(Id("half")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Has("read by both"));
  EXPECT_EQ(store_->statistics().pins, 1u);
}

TEST_F(StoreTest, AnObjectOfADeadOwnerStaysReservedWhileATransferPinsIt) {
  ASSERT_TRUE(Create("half", 100).ok());
  ASSERT_TRUE(store_->Pin(Id("half"), bob_).ok());
  store_->DropOwner(alice_);
  EXPECT_EQ(store_->statistics().lingering_objects, 1u);
  ASSERT_TRUE(store_->Release(Id("half"), bob_).ok());
  EXPECT_EQ(store_->statistics().used_bytes, 0u);
}

TEST_F(StoreTest, CreateAndSealCopiesDataAndMetadata) {
  ASSERT_TRUE(store_->CreateAndSeal({Id("x"), AsBytes("data"), AsBytes("meta")}, alice_).ok());
  const absl::Span<const uint8_t> bytes = store_->Bytes(*store_->Find(Id("x")));
  EXPECT_EQ(bytes, AsBytes("datameta"));
}

TEST_F(StoreTest, CreateAndSealRefusesMoreThanOneTaskMayCopy) {
  const std::vector<uint8_t> large(Store::kMaxSmallBytes + 1);
  EXPECT_EQ(store_->CreateAndSeal({Id("x"), large, {}}, alice_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StoreTest, EachObjectOfABatchSucceedsOrFailsAlone) {
  Put("b", 10);
  const auto locations = store_->CreateAndSealBatch(
      {{Id("a"), AsBytes("1"), {}}, {Id("b"), AsBytes("2"), {}}, {Id("c"), AsBytes("3"), {}}}, alice_);
  ASSERT_EQ(locations.size(), 3u);
  EXPECT_TRUE(locations[0].ok());
  EXPECT_EQ(locations[1].status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(locations[2].ok());
  EXPECT_TRUE(Has("a") && Has("c"));
}

TEST_F(StoreTest, ABatchAppearsTogetherOrNotAtAll) {
  const auto together = [&](std::vector<std::string> names, size_t size = 100) {
    std::vector<SmallObject> objects;
    const std::vector<uint8_t> bytes(size, 7);
    for (const std::string& name : names) objects.push_back({Id(name), bytes, AsBytes("m")});
    return store_->CreateAndSealTogether(objects, alice_);
  };
  ASSERT_EQ(together({"a", "b"}), absl::OkStatus());
  EXPECT_EQ(store_->Find(Id("b"))->metadata_size, 1u);
  EXPECT_TRUE(absl::IsAlreadyExists(together({"c", "d", "a"})));
  EXPECT_TRUE(absl::IsAlreadyExists(together({"e", "e"}))) << "one id twice";
  EXPECT_TRUE(absl::IsResourceExhausted(together({"f", "g", "h"}, kCapacity / 3)));
  EXPECT_TRUE(absl::IsInvalidArgument(together({"i"}, Store::kMaxSmallBytes)));
  EXPECT_EQ(together({}), absl::OkStatus());
  EXPECT_EQ(store_->statistics().sealed_objects, 2u);
  EXPECT_EQ(store_->statistics().unsealed_objects, 0u);
  EXPECT_EQ(store_->statistics().used_bytes, 2u * 128);
}

TEST_F(StoreTest, ABatchThatIsTooLargeCreatesNothing) {
  const std::vector<uint8_t> half(Store::kMaxSmallBytes / 2 + 1);
  const auto locations = store_->CreateAndSealBatch({{Id("a"), half, {}}, {Id("b"), half, {}}}, alice_);
  EXPECT_EQ(locations[0].status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(locations[1].status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->statistics().created, 0u);
}

TEST_F(StoreTest, StatReportsStatePinsOriginAndAge) {
  scheduler_.RunFor(base::Seconds(3));
  Put("x", 100, Origin::kPulled);
  ASSERT_TRUE(store_->Acquire(Id("x"), bob_).ok());
  const StoredObject info = *store_->Stat(Id("x"));
  EXPECT_EQ(info.state, State::kSealed);
  EXPECT_EQ(info.origin, Origin::kPulled);
  EXPECT_EQ(info.pins, 1u);
  EXPECT_EQ(info.created_at, base::Time() + base::Seconds(3));
}

TEST_F(StoreTest, ListShowsEveryStateInPages) {
  Put("sealed", 10);
  ASSERT_TRUE(Create("unsealed", 10).ok());
  Put("lingering", 10);
  ASSERT_TRUE(store_->Acquire(Id("lingering"), bob_).ok());
  ASSERT_TRUE(store_->Delete(Id("lingering")).ok());

  const std::vector<StoredObject> first = store_->List(2);
  ASSERT_EQ(first.size(), 2u);
  const std::vector<StoredObject> rest = store_->List(2, first.back().id);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_TRUE(first[0].id < first[1].id && first[1].id < rest[0].id);
}

TEST_F(StoreTest, NothingIsEverLost) {
  Put("evicted", 100, Origin::kPulled);
  EXPECT_EQ(store_->Evict(1).objects, 1u);
  Put("deleted", 100);
  ASSERT_TRUE(store_->Delete(Id("deleted")).ok());
  ASSERT_TRUE(Create("aborted", 100).ok());
  ASSERT_TRUE(store_->Abort(Id("aborted"), alice_).ok());
  Put("kept", 100);

  const Statistics statistics = store_->statistics();
  EXPECT_EQ(statistics.created, 4u);
  EXPECT_EQ(statistics.sealed, 3u);
  EXPECT_EQ(statistics.lost(), 0);
}

TEST_F(StoreTest, TheSameCallsLeaveTheSameTrace) {
  base::TraceHash other;
  Store twin(memory(), {}, loop_, other);
  for (Store* store : {store_.get(), &twin}) {
    const Owner who = store->NewOwner();
    ASSERT_TRUE(store->CreateCopy({Id("x"), base::Generation{7}}, 10, 0, who).ok());
    ASSERT_TRUE(store->Seal(Id("x"), who).ok());
    store->Evict(1);
  }
  EXPECT_EQ(trace_.hash(), other.hash());
  EXPECT_EQ(trace_.events(), 3u);
}

}  // namespace
}  // namespace tokamak::store

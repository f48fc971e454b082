// Creates that wait for room: the order in which they are served, and the errors of the others.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/store/store.h"
#include "tests/store/fixture.h"

namespace tokamak::store {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class StoreCreatesTest : public StoreTest {
 protected:
  static constexpr uint64_t kPart = kCapacity / 16;

  // Objects "0" to "15", which are kept and fill the store.
  void Fill() {
    for (int i = 0; i < 16; ++i) Put(absl::StrCat(i), kPart);
  }
  void Delete(int part) { ASSERT_TRUE(store_->Delete(Id(absl::StrCat(part))).ok()); }

  void Later(const std::string& name, uint64_t size, Owner who, base::Duration timeout = base::Seconds(10)) {
    pending_.push_back(
        store_->CreateLater({Id(name), size, 0, who}, In(timeout), [this, name](absl::StatusOr<Location> location) {
          (location.ok() ? created_ : failed_).push_back(name);
          last_ = std::move(location);
        }));
  }
  void Later(const std::string& name, uint64_t size) { Later(name, size, bob_); }

  // Longer than the queue pauses after a search that failed.
  void RunABit() { scheduler_.RunFor(base::Milliseconds(10)); }

  std::vector<std::string> created_, failed_;
  absl::StatusOr<Location> last_ = absl::UnknownError("nothing was answered");
  std::vector<base::Pending> pending_;
};

TEST_F(StoreCreatesTest, ACreateWithRoomAnswersSoonButNotInsideTheCall) {
  Later("x", 100);
  EXPECT_THAT(created_, IsEmpty());
  scheduler_.RunFor(base::Duration());
  EXPECT_THAT(created_, ElementsAre("x"));
  EXPECT_EQ(store_->Stat(Id("x"))->location, *last_);
  EXPECT_NE(last_->generation, base::kNoGeneration);
  EXPECT_EQ(store_->Seal(Id("x"), bob_), absl::OkStatus());
}

TEST_F(StoreCreatesTest, ACreateWaitsUntilMemoryIsFreed) {
  Fill();
  Later("x", kPart);
  RunABit();
  EXPECT_THAT(created_, IsEmpty());
  EXPECT_EQ(store_->statistics().waiting_creates, 1u);
  Delete(3);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("x"));
  EXPECT_EQ(store_->statistics().waiting_creates, 0u);
}

TEST_F(StoreCreatesTest, ACreateThatHasWaitedKeepsItsName) {
  Fill();
  const auto pending =
      store_->CreateLater({Id("x"), kPart, 0, bob_, Name("x")}, In(base::Seconds(1)), [](const auto&) {});
  Delete(3);
  RunABit();
  EXPECT_EQ(store_->Stat(Id("x"))->name.text(), "x");
}

TEST_F(StoreCreatesTest, ACreateWaitsUntilACopyIsReadNoMore) {
  Put("copy", kCapacity, Origin::kPulled);
  ASSERT_TRUE(store_->Acquire(Id("copy"), alice_).ok());
  Later("x", 100);
  RunABit();
  EXPECT_THAT(created_, IsEmpty());
  ASSERT_TRUE(store_->Release(Id("copy"), alice_).ok());
  RunABit();
  EXPECT_THAT(created_, ElementsAre("x"));
  EXPECT_FALSE(Has("copy"));
}

TEST_F(StoreCreatesTest, ACreateFailsAtItsDeadlineAndNamesTheHoldersOfMemory) {
  const Owner trainer = store_->NewOwner("pid 7 trainer"), reader = store_->NewOwner("pid 8 reader");
  Put("copy", kCapacity / 4, Origin::kPulled);
  ASSERT_TRUE(store_->Acquire(Id("copy"), reader).ok());
  ASSERT_TRUE(store_->Create(Id("open"), kCapacity / 2, 0, trainer).ok());
  Later("x", kCapacity / 2, bob_, base::Seconds(3));
  scheduler_.RunFor(base::Milliseconds(2999));
  EXPECT_THAT(failed_, IsEmpty());
  scheduler_.RunFor(base::Milliseconds(1));
  EXPECT_THAT(failed_, ElementsAre("x"));
  EXPECT_EQ(last_.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(last_.status().message(), HasSubstr("pid 7 trainer has 32 KiB unsealed; pid 8 reader has 16 KiB pinned"));
  EXPECT_THAT(last_.status().message(), HasSubstr("--memory"));
  EXPECT_EQ(store_->statistics().creates_refused, 1u);
}

TEST_F(StoreCreatesTest, CreatesAreServedInTheirOrder) {
  Fill();
  for (const char* name : {"a", "b", "c"}) Later(name, kPart);
  for (int part = 0; part < 3; ++part) {
    Delete(part);
    RunABit();
  }
  EXPECT_THAT(created_, ElementsAre("a", "b", "c"));
}

TEST_F(StoreCreatesTest, SmallerOnesOvertakeALargeOneByAsManyBytesAsItAsksFor) {
  Fill();
  Later("large", 2 * kPart);
  for (const char* name : {"a", "b", "c"}) Later(name, kPart);
  for (const int part : {0, 2, 4}) Delete(part);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("a", "b"));
  EXPECT_EQ(Create("d", kPart).code(), absl::StatusCode::kResourceExhausted) << "there is room, but not for this one";

  Delete(8);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("a", "b")) << "two places are free, but not side by side";
  Delete(9);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("a", "b", "large", "c"));
}

TEST_F(StoreCreatesTest, ACreateThatDoesNotWaitOvertakesByTheSameMeasure) {
  Fill();
  Later("large", 2 * kPart);
  RunABit();
  for (const int part : {0, 2, 4}) Delete(part);
  EXPECT_TRUE(Create("a", kPart).ok());
  EXPECT_TRUE(Create("b", kPart).ok());
  const absl::Status status = Create("c", kPart);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("1 other creates wait for room"));
  EXPECT_TRUE(Create("copy", kPart, Origin::kPulled).ok()) << "it can be evicted when it has been read";
}

TEST_F(StoreCreatesTest, WithoutWaitingACreateForWhichThereIsNoRoomIsNotCountedAsRefused) {
  Fill();
  EXPECT_FALSE(store_->CreateIfRoom({Id("x"), 100, 0, bob_}).has_value());
  EXPECT_EQ(store_->statistics().creates_refused, 0u);
  EXPECT_EQ(store_->CreateIfRoom({Id("1"), 100, 0, bob_})->status().code(), absl::StatusCode::kAlreadyExists);
  Delete(0);
  EXPECT_TRUE(store_->CreateIfRoom({Id("x"), 100, 0, bob_})->ok());
  Later("large", kPart);
  RunABit();
  EXPECT_TRUE(store_->CreateIfRoom({Id("y"), 100, 0, bob_})->ok());
  EXPECT_FALSE(store_->CreateIfRoom({Id("z"), kPart - 64, 0, bob_}).has_value());
}

TEST_F(StoreCreatesTest, MissingRoomIsFoundOnceItAppears) {
  Put("a", kCapacity / 4, Origin::kPulled);
  Put("wall", kCapacity / 2);
  Put("b", kCapacity / 4, Origin::kPulled);
  EXPECT_FALSE(Create("x", kCapacity / 2).ok());
  EXPECT_FALSE(Create("x", kCapacity / 2).ok());
  EXPECT_TRUE(Has("a") && Has("b"));
  ASSERT_TRUE(store_->Delete(Id("wall")).ok());
  EXPECT_TRUE(Create("x", kCapacity / 2 + 64).ok());
}

TEST_F(StoreCreatesTest, TheNextCreateIsServedWhenTheFirstGivesUp) {
  Fill();
  Later("large", 2 * kPart, bob_, base::Seconds(1));
  for (const char* name : {"a", "b", "c"}) Later(name, kPart);
  for (const int part : {0, 2, 4}) Delete(part);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("a", "b"));
  scheduler_.RunFor(base::Seconds(1));
  EXPECT_THAT(failed_, ElementsAre("large"));
  EXPECT_THAT(created_, ElementsAre("a", "b", "c"));
}

TEST_F(StoreCreatesTest, ACreateThatWaitingCannotHelpFailsAtOnce) {
  Fill();
  Later("0", 100);
  Later("too large", kCapacity + 1);
  Later("absurd", UINT64_MAX);
  scheduler_.RunFor(base::Duration());
  EXPECT_THAT(failed_, ElementsAre("0", "too large", "absurd"));
}

TEST_F(StoreCreatesTest, TheSecondOfTwoCreatesThatWaitForOneIdFails) {
  Fill();
  Later("x", kPart);
  Later("x", kPart);
  Delete(0);
  Delete(1);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("x"));
  EXPECT_THAT(failed_, ElementsAre("x"));
  EXPECT_EQ(last_.status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(StoreCreatesTest, ADroppedCreateCreatesNothing) {
  Fill();
  Later("x", kPart);
  Later("y", kPart);
  pending_[0].reset();
  Delete(0);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("y"));
  EXPECT_EQ(store_->statistics().waiting_creates, 0u);
}

TEST_F(StoreCreatesTest, AnOwnerThatIsGoneWaitsNoMore) {
  Fill();
  Later("x", kPart, alice_);
  Later("y", kPart, bob_);
  store_->DropOwner(alice_);
  Delete(0);
  RunABit();
  EXPECT_THAT(created_, ElementsAre("y"));
  EXPECT_THAT(failed_, IsEmpty());
}

TEST_F(StoreCreatesTest, OneOwnerCannotTakeThePlacesOfAnother) {
  Fill();
  for (size_t i = 0; i < CreateQueue::kMaxWaitingCreates; ++i) Later(absl::StrCat("a", i), kPart, alice_);
  Later("one too many", kPart, alice_);
  Later("bob's", kPart, bob_);
  RunABit();
  EXPECT_THAT(failed_, ElementsAre("one too many"));
  EXPECT_EQ(store_->statistics().waiting_creates, CreateQueue::kMaxWaitingCreates + 1);
}

TEST_F(StoreCreatesTest, ACallbackMayDropTheOthersAndTheStore) {
  Fill();
  std::vector<base::Pending> others;
  const base::Pending first =
      store_->CreateLater({Id("x"), kPart, 0, bob_}, In(base::Seconds(1)), [&](const absl::StatusOr<Location>&) {
        others.clear();
        store_.reset();
      });
  for (const char* name : {"y", "z"}) {
    others.push_back(store_->CreateLater({Id(name), kPart, 0, bob_}, In(base::Seconds(1)),
                                         [](const absl::StatusOr<Location>&) { ADD_FAILURE(); }));
  }
  for (int part = 0; part < 3; ++part) Delete(part);
  scheduler_.RunFor(base::Seconds(2));
  EXPECT_EQ(store_, nullptr);
}

TEST_F(StoreCreatesTest, ACreateThatOutlivesTheStoreDoesNothing) {
  Fill();
  Later("x", kPart);
  store_.reset();
  scheduler_.RunFor(base::Seconds(20));
  EXPECT_THAT(created_, IsEmpty());
  EXPECT_THAT(failed_, IsEmpty());
}

// ---- who holds what

TEST_F(StoreCreatesTest, UsageNamesHoldersTheLargestFirst) {
  const Owner one = store_->NewOwner("one"), other = store_->NewOwner("other"), again = store_->NewOwner("one");
  ASSERT_TRUE(store_->Create(Id("open"), 1000, 0, one).ok());
  ASSERT_TRUE(store_->CreateAndSeal({Id("kept"), AsBytes("12345"), {}}, again).ok());
  ASSERT_TRUE(store_->Acquire(Id("kept"), other).ok());
  ASSERT_TRUE(store_->Acquire(Id("kept"), other).ok());
  std::vector<OwnerUsage> usage = store_->usage();
  ASSERT_EQ(usage.size(), 2u);
  EXPECT_EQ(usage[0].label, "one");
  EXPECT_EQ(usage[0].unsealed_bytes, 1000u);
  EXPECT_EQ(usage[0].kept_bytes, 5u);
  EXPECT_EQ(usage[1].label, "other");
  EXPECT_EQ(usage[1].pinned_bytes, 5u) << "an object counts once, however often it is pinned";

  store_->DropOwner(one);
  store_->DropOwner(again);
  ASSERT_TRUE(store_->Delete(Id("kept")).ok());
  usage = store_->usage();
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_EQ(usage[0].label, "other") << "what is deleted is held by who reads it";
}

TEST_F(StoreCreatesTest, LeftoversOfEndedProgramsAreOneEntry) {
  for (const char* label : {"pid 1", "pid 2"}) {
    const Owner who = store_->NewOwner(label);
    ASSERT_TRUE(store_->CreateAndSeal({Id(label), AsBytes("12345"), {}}, who).ok());
    store_->DropOwner(who);
  }
  ASSERT_EQ(store_->usage().size(), 1u);
  EXPECT_TRUE(store_->usage()[0].ended);
  EXPECT_EQ(store_->usage()[0].kept_bytes, 10u);
  ASSERT_TRUE(store_->Delete(Id("pid 1")).ok());
  ASSERT_TRUE(store_->Delete(Id("pid 2")).ok());
  EXPECT_THAT(store_->usage(), IsEmpty());
}

class QuotaTest : public StoreCreatesTest {
 protected:
  static constexpr uint64_t kQuota = 4096;

  QuotaTest() {
    Options options;
    options.quota_bytes = kQuota;
    store_ = std::make_unique<Store>(memory(), options, loop_, trace_);
    alice_ = store_->NewOwner();
    bob_ = store_->NewOwner();
    program_ = store_->NewOwner("pid 1 program");
    Put("a", kQuota / 2);
    Put("b", kQuota / 2 + 1);
  }

  Owner program_{};
};

TEST_F(QuotaTest, UnsealedAndPinnedBytesTogetherStayWithinTheQuota) {
  ASSERT_TRUE(store_->Create(Id("x"), kQuota / 2, 0, program_).ok());
  const absl::Status status = store_->Create(Id("y"), kQuota / 2 + 1, 0, program_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("quota of pid 1 program"));
  EXPECT_THAT(status.message(), HasSubstr("--quota"));
  EXPECT_EQ(store_->Acquire(Id("b"), program_).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store_->Acquire(Id("a"), program_).ok());
  EXPECT_TRUE(store_->Acquire(Id("a"), program_).ok()) << "again costs nothing";
  EXPECT_TRUE(store_->CreateAndSeal({Id("z"), AsBytes("at once"), {}}, program_).ok()) << "holds nothing";
}

TEST_F(QuotaTest, SealingAndReleasingReturnQuota) {
  ASSERT_TRUE(store_->Create(Id("x"), kQuota, 0, program_).ok());
  ASSERT_TRUE(store_->Seal(Id("x"), program_).ok());
  ASSERT_TRUE(store_->Acquire(Id("x"), program_).ok());
  EXPECT_FALSE(store_->Create(Id("y"), 1, 0, program_).ok());
  ASSERT_TRUE(store_->Release(Id("x"), program_).ok());
  EXPECT_TRUE(store_->Create(Id("y"), kQuota, 0, program_).ok());
}

TEST_F(QuotaTest, AnAbandonedUnsealedObjectCountsForItsProgramUntilItIsReturned) {
  const Owner keeper = store_->NewOwner();
  ASSERT_TRUE(store_->Create(Id("x"), kQuota - 100, 0, program_).ok());
  ASSERT_TRUE(store_->AbandonOwner(program_, keeper));
  const Owner again = store_->NewOwner("pid 1 program");
  const absl::Status status = store_->Create(Id("y"), 101, 0, again).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(status.message(), HasSubstr("connections of it left unsealed"));
  EXPECT_TRUE(store_->Create(Id("y"), 100, 0, again).ok()) << "what is left of it";
  EXPECT_TRUE(store_->Create(Id("other"), kQuota, 0, store_->NewOwner("pid 2 program")).ok());
  store_->DropOwner(again);
  EXPECT_THAT(store_->usage(), Contains(Field(&OwnerUsage::label, "pid 1 program"))) << "it lives, and may write";
  EXPECT_EQ(store_->CheckConsistency(), absl::OkStatus());
  store_->EndQuarantine(keeper);
  EXPECT_THAT(store_->usage(), Not(Contains(Field(&OwnerUsage::label, "pid 1 program"))));
  EXPECT_TRUE(store_->Create(Id("z"), kQuota, 0, store_->NewOwner("pid 1 program")).ok());
}

TEST_F(QuotaTest, TheConnectionsOfAProgramShareItsQuota) {
  ASSERT_TRUE(store_->Create(Id("x"), kQuota, 0, program_).ok());
  EXPECT_FALSE(store_->Create(Id("y"), 1, 0, store_->NewOwner("pid 1 program")).ok());
  EXPECT_TRUE(store_->Create(Id("y"), kQuota, 0, store_->NewOwner("pid 2 program")).ok());
  EXPECT_TRUE(store_->Create(Id("z"), 2 * kQuota, 0, alice_).ok()) << "the node itself has none";
}

TEST_F(QuotaTest, AnOwnerMayHaveALimitOfItsOwn) {
  const Owner one = store_->NewOwner("pid 1 a"), other = store_->NewOwner("pid 1 a");
  store_->Limit(one, 2000);
  ASSERT_TRUE(store_->Create(Id("o1"), 1500, 0, one).ok());
  const absl::Status beyond = store_->Create(Id("o2"), 501, 0, one).status();
  EXPECT_TRUE(absl::IsResourceExhausted(beyond));
  EXPECT_THAT(beyond.message(), HasSubstr("500 B are left"));
  ASSERT_TRUE(store_->Create(Id("o2"), 501, 0, other).ok()) << "it is not the program's";
  ASSERT_TRUE(store_->Seal(Id("o1"), one).ok());
  ASSERT_TRUE(store_->Seal(Id("o2"), other).ok());
  ASSERT_TRUE(store_->Acquire(Id("o1"), one).ok());
  EXPECT_TRUE(store_->Acquire(Id("o1"), one).ok()) << "what it has pinned costs nothing more";
  EXPECT_TRUE(absl::IsResourceExhausted(store_->Acquire(Id("o2"), one).status()));
  ASSERT_TRUE(store_->Release(Id("o1"), one).ok());
  ASSERT_TRUE(store_->Release(Id("o1"), one).ok());
  EXPECT_TRUE(store_->Acquire(Id("o2"), one).ok());
  ASSERT_TRUE(store_->Create(Id("o3"), 1000, 0, one).ok());
  ASSERT_TRUE(store_->Abort(Id("o3"), one).ok());
  EXPECT_TRUE(store_->Create(Id("o4"), 1499, 0, one).ok());
  store_->DropOwner(one);
  store_->DropOwner(other);
}

TEST_F(QuotaTest, AGetNamesTheObjectThatItRefuses) {
  std::vector<GetEntry> entries;
  const auto get = store_->GetLater({Id("a"), Id("b")}, In(base::Seconds(1)), program_,
                                    [&](absl::Span<const GetEntry> got) { entries.assign(got.begin(), got.end()); });
  scheduler_.RunFor(base::Duration());
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_TRUE(entries[0].location.has_value());
  EXPECT_FALSE(entries[1].location.has_value());
  EXPECT_EQ(entries[1].refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(store_->statistics().pins, 1u);
}

TEST_F(QuotaTest, ACreateThatWaitsIsRefusedAtOnceToo) {
  ASSERT_TRUE(store_->Acquire(Id("a"), program_).ok());
  Later("x", kQuota, program_);
  scheduler_.RunFor(base::Duration());
  EXPECT_THAT(failed_, ElementsAre("x"));
  EXPECT_THAT(last_.status().message(), HasSubstr("quota"));
}

// ---- a store that is closed to puts

TEST_F(StoreCreatesTest, AStoreClosedToPutsCreatesAndSealsNothing) {
  ASSERT_EQ(Create("unsealed", 100), absl::OkStatus());
  ASSERT_EQ(Create("copy", 100, Origin::kPulled), absl::OkStatus());
  store_->CloseToPuts(absl::UnavailableError("it leaves"));
  EXPECT_EQ(Create("x", 100), absl::UnavailableError("it leaves"));
  EXPECT_EQ(store_->CreateIfRoom({Id("x"), 100, 0, bob_})->status(), absl::UnavailableError("it leaves"));
  EXPECT_EQ(store_->Seal(Id("unsealed"), alice_), absl::UnavailableError("it leaves"));
  const SmallObject small{Id("small"), AsBytes("12"), AsBytes("")};
  EXPECT_EQ(store_->CreateAndSeal(small, bob_).status(), absl::UnavailableError("it leaves"));
  EXPECT_EQ(store_->CreateAndSealBatch({small}, bob_).front().status(), absl::UnavailableError("it leaves"));
  EXPECT_EQ(store_->CreateAndSealTogether({small}, bob_), absl::UnavailableError("it leaves"));
  EXPECT_FALSE(Has("unsealed") || Has("small"));
  // Copies come and go.
  EXPECT_EQ(store_->Seal(Id("copy"), alice_), absl::OkStatus());
  EXPECT_EQ(Create("another", 100, Origin::kPulled), absl::OkStatus());
  EXPECT_EQ(store_->Delete(Id("copy")), absl::OkStatus());
  store_->OpenToPuts();
  EXPECT_EQ(store_->Seal(Id("unsealed"), alice_), absl::OkStatus());
}

TEST_F(StoreCreatesTest, ClosingToPutsEndsCreatesThatWaitForRoom) {
  Fill();
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) Later(name, kPart);
  RunABit();
  EXPECT_THAT(failed_, IsEmpty());
  store_->CloseToPuts(absl::UnavailableError("it leaves"));
  RunABit();
  EXPECT_THAT(failed_, ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_EQ(last_.status(), absl::UnavailableError("it leaves"));
  Later("g", kPart);
  RunABit();
  EXPECT_EQ(failed_.back(), "g");
}

}  // namespace
}  // namespace tokamak::store

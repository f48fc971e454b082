#include "lib/node/pulls/pull_place.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "sim/time/sim_loop.h"

namespace tokamak::node {
namespace {

class PullPlaceTest : public testing::Test {
 protected:
  static constexpr uint64_t kArena = 1 << 16;
  struct alignas(64) Block {
    uint8_t bytes[64];
  };

  static directory::LocatedObject Described(uint64_t data_size, uint64_t metadata_size) {
    directory::LocatedObject info;
    info.generation = base::Generation{7};
    info.data_size = data_size;
    info.metadata_size = metadata_size;
    return info;
  }
  void Reserve(uint64_t data_size = 100, uint64_t metadata_size = 20) {
    ASSERT_EQ(place_.Reserve(Described(data_size, metadata_size)), absl::OkStatus());
  }
  void TearDown() override { EXPECT_EQ(store_.CheckConsistency(), absl::OkStatus()); }

  const base::ObjectId id_ = base::ObjectId::FromName("x");
  sim::Scheduler scheduler_;
  sim::SimLoop loop_{scheduler_};
  base::NoTrace trace_;
  std::vector<Block> arena_ = std::vector<Block>(kArena / sizeof(Block));
  store::Store store_{{arena_[0].bytes, kArena}, store::Options(), loop_, trace_};
  const store::Owner program_ = store_.NewOwner();
  PullPlace place_{store_, id_};
};

TEST_F(PullPlaceTest, HasRoomForDataAndMetadata) {
  Reserve(100, 20);
  EXPECT_TRUE(place_.reserved());
  EXPECT_EQ(place_.size(), 120u);
  EXPECT_EQ(place_.memory().size(), 120u);
}

TEST_F(PullPlaceTest, APlaceIsInvisibleBeforeItIsSealed) {
  Reserve();
  EXPECT_FALSE(store_.Contains(id_));
  place_.Seal();
  ASSERT_TRUE(store_.Contains(id_));
  EXPECT_EQ(store_.Find(id_)->generation, base::Generation{7});
}

TEST_F(PullPlaceTest, ASealedCopyIsNotPinned) {
  Reserve();
  place_.Seal();
  EXPECT_EQ(store_.statistics().pins, 0u);
  place_.GiveUp();
  EXPECT_TRUE(store_.Contains(id_));
}

TEST_F(PullPlaceTest, NothingIsReservedWithoutRoom) {
  EXPECT_TRUE(absl::IsResourceExhausted(place_.Reserve(Described(kArena + 1, 0))));
  EXPECT_FALSE(place_.reserved());
  EXPECT_EQ(place_.size(), 0u);
}

TEST_F(PullPlaceTest, AnIdThatAProgramIsCreatingIsInUse) {
  ASSERT_TRUE(store_.Create(id_, 10, 0, program_).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(place_.Reserve(Described(100, 0))));
  EXPECT_FALSE(place_.reserved());
}

TEST_F(PullPlaceTest, APlaceThatIsGivenUpIsFree) {
  Reserve();
  place_.GiveUp();
  EXPECT_FALSE(place_.reserved());
  EXPECT_EQ(store_.statistics().used_bytes, 0u);
  EXPECT_TRUE(store_.Create(id_, 10, 0, program_).ok());
}

TEST_F(PullPlaceTest, APlaceIsGivenUpWithItsPull) {
  {
    PullPlace place(store_, base::ObjectId::FromName("y"));
    ASSERT_EQ(place.Reserve(Described(100, 0)), absl::OkStatus());
  }
  EXPECT_EQ(store_.statistics().used_bytes, 0u);
}

TEST_F(PullPlaceTest, BytesThatArrivedBeforeACutAreKept) {
  Reserve(100, 20);
  place_.moved() = 90;  // not all of it certainly right
  place_.Cut(64);
  EXPECT_TRUE(place_.reserved());
  EXPECT_EQ(place_.arrived(), 64u);
  EXPECT_EQ(place_.moved_bytes(), 64u);
}

TEST_F(PullPlaceTest, ACutBeforeAnythingHasArrivedKeepsNoRoom) {
  Reserve();
  place_.Cut(0);
  EXPECT_FALSE(place_.reserved());
}

// A transfer that fails with all bytes in place has not shown that they are right.
TEST_F(PullPlaceTest, ACutAfterAllHasArrivedKeepsNothing) {
  Reserve(100, 20);
  place_.Cut(120);
  EXPECT_FALSE(place_.reserved());
}

TEST_F(PullPlaceTest, TheNextReservationBeginsAnew) {
  Reserve();
  place_.Cut(64);
  place_.GiveUp();
  Reserve();
  EXPECT_EQ(place_.arrived(), 0u);
  EXPECT_EQ(place_.moved_bytes(), 0u);
}

}  // namespace
}  // namespace tokamak::node

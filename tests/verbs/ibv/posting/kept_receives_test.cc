// Receives from before there was a queue pair.
#include "lib/verbs/ibv/posting/kept_receives.h"

#include <vector>

#include "gtest/gtest.h"
#include "lib/verbs/ibv/posting/posting.h"
#include "lib/verbs/ibv/posting/work_ring.h"
#include "tests/verbs/ibv/posting/fake_provider.h"

namespace tokamak::verbs::ibv {
namespace {

class KeptReceivesTest : public testing::Test {
 protected:
  void Keep(uint64_t position, size_t sges) {
    std::vector<Sge> pieces(sges, Sge{memory_, 8, 7});
    kept_.Keep({0, pieces}, position);  // the pieces are the caller's again
  }

  uint8_t memory_[8] = {};
  KeptReceives kept_;
  FakeProvider provider_;
};

TEST_F(KeptReceivesTest, AllArePostedOnceInOrderWithTheirPieces) {
  for (uint64_t i = 0; i < kBatchRequests + 2; ++i) Keep(i, i % 3);
  EXPECT_EQ(kept_.PostTo(provider_.get(), false), 0);
  ASSERT_EQ(provider_.receives.size(), kBatchRequests + 2);
  for (uint64_t i = 0; i < provider_.receives.size(); ++i) {
    EXPECT_EQ(provider_.receives[i].wr_id, kReceiveMark | i);
    EXPECT_EQ(provider_.receives[i].sges, static_cast<int>(i % 3));
  }
  EXPECT_EQ(provider_.batches, (std::vector<size_t>{kBatchRequests, 2}));
  EXPECT_EQ(kept_.PostTo(provider_.get(), false), 0);
  EXPECT_EQ(provider_.batches.size(), 2u);
}

TEST_F(KeptReceivesTest, WhereOneIsNeededAnEmptyPieceStandsIn) {
  Keep(0, 0);
  EXPECT_EQ(kept_.PostTo(provider_.get(), true), 0);
  EXPECT_EQ(provider_.receives.at(0).sges, 1);
}

TEST_F(KeptReceivesTest, ARefusalIsReportedAndEndsIt) {
  for (uint64_t i = 0; i < 3 * kBatchRequests; ++i) Keep(i, 1);
  provider_.room = kBatchRequests + 1;
  EXPECT_EQ(kept_.PostTo(provider_.get(), false), ENOMEM);
  EXPECT_EQ(provider_.batches.size(), 2u) << "no later one goes before";
}

}  // namespace
}  // namespace tokamak::verbs::ibv

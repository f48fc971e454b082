// How long bytes take on a wire.
#include "sim/fabric/link/rate.h"

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

TEST(RateTest, TimeIsExactWhereAByteTakesWholePicoseconds) {
  EXPECT_EQ(Rate::Gigabits(100).TimeOf(4178).picoseconds(), 4178 * 80);
  EXPECT_EQ(Rate::Gigabits(25).TimeOf(1).picoseconds(), 320);
  EXPECT_EQ(Rate::Gigabits(400).TimeOf(4178).picoseconds(), 4178 * 20);
  EXPECT_EQ(Rate::Gigabits(8000).TimeOf(4178).picoseconds(), 4178);
  EXPECT_EQ(Rate::BitsPerSecond(Rate::kLeast).TimeOf(4178).picoseconds(), int64_t{4178} * 8'000'000);
}

TEST(RateTest, OtherRatesAreRoundedOnceForEachFrame) {
  EXPECT_EQ(Rate::Gigabits(56).TimeOf(7).picoseconds(), 1000);
  EXPECT_EQ(Rate::Gigabits(3).TimeOf(1000).picoseconds(), 2'666'667);
}

TEST(RateTest, BytesInATimeCountThoseThatHaveBegunToPass) {
  EXPECT_EQ(Rate::Gigabits(100).BytesIn(base::Microseconds(2)), 25'000u);
  EXPECT_EQ(Rate::Gigabits(100).BytesIn(base::Duration::Picoseconds(81)), 2u);
  EXPECT_EQ(Rate::Gigabits(100).BytesIn(base::Duration()), 0u);
}

TEST(RateTest, ARateIsReadAsPeopleWriteIt) {
  EXPECT_EQ(Rate::Parse("100Gb/s")->bits_per_second(), 100'000'000'000u);
  EXPECT_EQ(Rate::Parse(" 2.5 Gb/s")->bits_per_second(), 2'500'000'000u);
  EXPECT_EQ(Rate::Parse("200Mb/s")->ToString(), "200 Mb/s");
  EXPECT_EQ(Rate::Gigabits(100).ToString(), "100 Gb/s");
  for (const char* bad : {"", "100", "fast", "100Gbps", "100 GB/s", "0.5Mb/s", "9Tb/s", "-1Gb/s"}) {
    EXPECT_EQ(Rate::Parse(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace tokamak::sim

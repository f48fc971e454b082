#include "sim/emulation/lag_meter.h"

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

TEST(LagMeterTest, MaximumAndPercentileAreExactToAnEighth) {
  LagMeter meter;
  for (int i = 1; i <= 1000; ++i) meter.Add(base::Microseconds(i));
  const LagMeter::Lag lag = meter.Total();
  EXPECT_EQ(lag.samples, 1000u);
  EXPECT_EQ(lag.most, base::Milliseconds(1));
  EXPECT_GE(lag.percentile99, base::Microseconds(990));
  EXPECT_LE(lag.percentile99, base::Milliseconds(1));
}

TEST(LagMeterTest, OneOutlierOfAHundredIsNotInThePercentile) {
  LagMeter meter;
  for (int i = 0; i < 99; ++i) meter.Add(base::Microseconds(8));
  meter.Add(base::Seconds(1));
  EXPECT_EQ(meter.Total().most, base::Seconds(1));
  EXPECT_GE(meter.Total().percentile99, base::Microseconds(8));
  EXPECT_LE(meter.Total().percentile99, base::Microseconds(9));
  meter.Add(base::Seconds(1));
  meter.Add(base::Seconds(1));
  EXPECT_EQ(meter.Total().percentile99, base::Seconds(1));
}

TEST(LagMeterTest, EverySizeIsInTheBucketThatCoversIt) {
  for (int power = 0; power < 62; ++power) {
    for (int64_t off : {-1, 0, 1}) {
      const int64_t picoseconds = (int64_t{1} << power) + off;
      LagMeter meter;
      meter.Add(base::Duration::Picoseconds(picoseconds));
      // A second one, far above, so that the most does not hide the bucket.
      for (int i = 0; i < 200; ++i) meter.Add(base::Duration::Picoseconds(picoseconds));
      meter.Add(base::Duration::Picoseconds(int64_t{1} << 62));
      const int64_t found = meter.Total().percentile99.picoseconds();
      EXPECT_GE(found, picoseconds);
      EXPECT_LE(found, picoseconds + picoseconds / 8);
    }
  }
}

TEST(LagMeterTest, RecentStartsAgainAndTotalDoesNot) {
  LagMeter meter;
  meter.Add(base::Milliseconds(5));
  EXPECT_EQ(meter.TakeRecent().most, base::Milliseconds(5));
  meter.Add(base::Milliseconds(2));
  EXPECT_EQ(meter.TakeRecent().most, base::Milliseconds(2));
  EXPECT_EQ(meter.TakeRecent().samples, 0u);
  EXPECT_EQ(meter.Total().most, base::Milliseconds(5));
  EXPECT_EQ(meter.Total().samples, 2u);
}

TEST(LagMeterTest, NegativeLagsCountAsZero) {
  LagMeter meter;
  meter.Add(base::Duration::Picoseconds(-1));
  EXPECT_EQ(meter.Total().samples, 1u);
  EXPECT_EQ(meter.Total().most, base::Duration());
  EXPECT_EQ(meter.Total().percentile99, base::Duration());
}

}  // namespace
}  // namespace tokamak::sim

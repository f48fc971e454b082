#include "lib/base/time.h"

#include <gtest/gtest.h>

namespace tokamak::base {
namespace {

TEST(DurationTest, UnitsAreExact) {
  EXPECT_EQ(Nanoseconds(1).picoseconds(), 1000);
  EXPECT_EQ(Microseconds(1).picoseconds(), 1'000'000);
  EXPECT_EQ(Milliseconds(1).picoseconds(), 1'000'000'000);
  EXPECT_EQ(Seconds(1).picoseconds(), 1'000'000'000'000);
  EXPECT_EQ(Duration::Picoseconds(334'240).nanoseconds(), 334);
  EXPECT_EQ(Seconds(2).milliseconds(), 2000);
  EXPECT_EQ(Milliseconds(3).microseconds(), 3000);
  EXPECT_DOUBLE_EQ(Milliseconds(1500).seconds(), 1.5);
}

TEST(DurationTest, AddsScalesAndCompares) {
  EXPECT_TRUE(Microseconds(1) + Nanoseconds(500) == Nanoseconds(1500));
  EXPECT_TRUE(Microseconds(1) - Microseconds(3) == Microseconds(-2));
  EXPECT_TRUE(Nanoseconds(10) * 3 == Nanoseconds(30));
  EXPECT_TRUE(Nanoseconds(10) / 4 == Duration::Picoseconds(2500));
  EXPECT_TRUE(Microseconds(-1) < Duration());
  EXPECT_TRUE(Nanoseconds(1) > Duration::Picoseconds(999));
  EXPECT_TRUE(Nanoseconds(1) <= Nanoseconds(1) && Nanoseconds(1) >= Nanoseconds(1));
  EXPECT_TRUE(Nanoseconds(1) != Nanoseconds(2));
}

TEST(TimeTest, DifferencesAndSumsAgree) {
  const Time time = Time() + Seconds(5);
  EXPECT_TRUE(time - Time() == Seconds(5));
  EXPECT_TRUE(time - Seconds(5) == Time());
  EXPECT_TRUE(Time() - time == Seconds(-5));
}

TEST(TimeTest, OrdersAcrossTheWrapOfItsCounter) {
  const Time before = Time::FromPicoseconds(UINT64_MAX);
  const Time after = before + Duration::Picoseconds(1);
  EXPECT_EQ(after.picoseconds(), 0u);
  EXPECT_TRUE(before < after);
  EXPECT_TRUE(after > before);
  EXPECT_TRUE(before <= after && after >= before && before != after);
  EXPECT_TRUE(after - before == Duration::Picoseconds(1));
}

TEST(TimeTest, OrdersTimesAHundredDaysApart) {
  for (const uint64_t start : {uint64_t{0}, uint64_t{1} << 63, UINT64_MAX - 5}) {
    const Time time = Time::FromPicoseconds(start);
    EXPECT_TRUE(time < time + Seconds(100 * 86'400));
    EXPECT_TRUE(time > time - Seconds(100 * 86'400));
  }
}

}  // namespace
}  // namespace tokamak::base

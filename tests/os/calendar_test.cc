#include "lib/os/calendar.h"

#include <gtest/gtest.h>

namespace tokamak::os {
namespace {

TEST(CalendarTest, TextsAreOfUtc) {
  constexpr int64_t kMoment = int64_t{1'795'896'901} * 1'000'000'000 + 123'456'789;
  EXPECT_EQ(UtcText(kMoment), "2026-11-28T20:15:01Z");
  EXPECT_EQ(UtcTextWithMilliseconds(kMoment), "2026-11-28T20:15:01.123Z");
  EXPECT_EQ(UtcTextWithMilliseconds(0), "1970-01-01T00:00:00.000Z");
}

TEST(CalendarTest, ZeroOfALoopLiesItsTimeAgo) {
  const int64_t before = UnixNanoseconds();
  const int64_t at_zero = UnixNanosecondsAtZero(base::Time() + base::Seconds(5));
  const int64_t after = UnixNanoseconds();
  EXPECT_LE(before - 5'000'000'000, at_zero);
  EXPECT_LE(at_zero, after - 5'000'000'000);
}

}  // namespace
}  // namespace tokamak::os

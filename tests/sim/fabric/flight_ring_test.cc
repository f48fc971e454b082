// A line of frames that grows.
#include "sim/fabric/link/flight_ring.h"

#include "gtest/gtest.h"

namespace tokamak::sim {
namespace {

TEST(FlightRingTest, KeepsTheOrderAlsoWhereItGrowsInTheMiddle) {
  FlightRing ring;
  Frame frames[64];
  size_t in = 0;
  size_t out = 0;
  const auto push = [&] {
    ring.Push(&frames[in % 64], base::Time() + base::Nanoseconds(static_cast<int64_t>(in)));
    ++in;
  };
  const auto pop = [&] {
    EXPECT_EQ(ring.front().arrives, base::Time() + base::Nanoseconds(static_cast<int64_t>(out)));
    EXPECT_EQ(ring.Pop(), &frames[out % 64]);
    ++out;
  };
  // The line is longer each time, and begins elsewhere in the ring.
  for (size_t length = 1; length < 40; ++length) {
    while (ring.size() < length) push();
    for (size_t i = 0; i < length / 2; ++i) pop();
  }
  while (!ring.empty()) pop();
  EXPECT_EQ(in, out);
  EXPECT_GT(in, 300u);
}

}  // namespace
}  // namespace tokamak::sim

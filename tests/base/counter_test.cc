#include "lib/base/counter.h"

#include <gtest/gtest.h>

#include <thread>

namespace tokamak::base {
namespace {

TEST(CounterTest, Counts) {
  Counter counter;
  EXPECT_EQ(counter, 0u);
  ++counter;
  counter += 5;
  counter.Add(10);
  EXPECT_EQ(counter.value(), 16u);
  const Counter copy = counter;
  ++counter;
  EXPECT_EQ(copy, 16u);
  EXPECT_EQ(counter, 17u);
}

TEST(CounterTest, AnotherThreadReadsItWhileItGrows) {
  constexpr uint64_t kEnd = 100'000;
  Counter counter;
  std::thread reader([&] {
    for (uint64_t last = 0; last < kEnd;) {
      const uint64_t now = counter;
      EXPECT_GE(now, last);
      last = now;
    }
  });
  for (uint64_t i = 0; i < kEnd; ++i) ++counter;
  reader.join();
  EXPECT_EQ(counter, kEnd);
}

}  // namespace
}  // namespace tokamak::base

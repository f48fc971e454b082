// Numbers of queue pairs: that nobody can guess them, and that what they name is found.
#include "lib/verbs/soft/queue_pair_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/random.h"

namespace tokamak::verbs::soft {
namespace {

QueuePairTable Table(uint64_t seed) { return QueuePairTable(SecretNumbers(seed, 1)); }

std::vector<uint32_t> Draw(QueuePairTable table, size_t count) {
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < count; ++i) numbers.push_back(table.Reserve());
  return numbers;
}

TEST(QueuePairTableTest, NumbersHaveAll24BitsAndNoOrder) {
  const std::vector<uint32_t> numbers = Draw(Table(1), 4096);
  const std::set<uint32_t> distinct(numbers.begin(), numbers.end());
  EXPECT_EQ(distinct.size(), numbers.size());
  EXPECT_GE(*distinct.begin(), 2u);
  EXPECT_LT(*distinct.rbegin(), 0xffffffu);
  for (uint32_t bit = 1; bit < 1u << 24; bit <<= 1) {
    const auto with = std::count_if(numbers.begin(), numbers.end(), [bit](uint32_t n) { return (n & bit) != 0; });
    EXPECT_NEAR(static_cast<double>(with), 2048.0, 200.0) << bit;
  }
  std::set<uint32_t> steps;
  for (size_t i = 1; i < numbers.size(); ++i) steps.insert((numbers[i] - numbers[i - 1]) & kPsnMask);
  EXPECT_GT(steps.size(), 4000u) << "no number tells the next";
}

TEST(QueuePairTableTest, ASeedGivesItsNumbersAgainAndAnotherSeedOthers) {
  EXPECT_EQ(Draw(Table(1), 100), Draw(Table(1), 100));
  EXPECT_NE(Draw(Table(1), 100), Draw(Table(2), 100));
}

TEST(QueuePairTableTest, ANumberIsNotGivenOutWhileItIsHeld) {
  QueuePairTable table = Table(1);
  const uint32_t number = table.Reserve();
  auto* const queue_pair = reinterpret_cast<QueuePairCore*>(uintptr_t{64});
  table.Insert(number, queue_pair);
  EXPECT_EQ(table.Find(number), queue_pair);
  table.Hold(number);
  table.Remove(number);
  EXPECT_EQ(table.Find(number), nullptr);
  // All the rest is taken, so the number would come.
  size_t taken = 0;
  while (table.Reserve() != 0) ++taken;
  EXPECT_EQ(taken, QueuePairTable::kMaxQueuePairs - 1);
  table.Release(number);
  EXPECT_NE(table.Reserve(), 0u);
  EXPECT_EQ(table.Reserve(), 0u);
}

TEST(QueuePairTableTest, OtherEntriesAreFoundWhateverComesAndGoes) {
  QueuePairTable table = Table(3);
  base::Random random(7);
  std::map<uint32_t, QueuePairCore*> expected;
  std::set<uint32_t> held;
  for (uintptr_t i = 1; i < 20'000; ++i) {
    if (expected.size() < 300 && random.Chance(0.55)) {
      const uint32_t number = table.Reserve();
      ASSERT_TRUE(expected.emplace(number, reinterpret_cast<QueuePairCore*>(i * 64)).second && held.count(number) == 0);
      table.Insert(number, expected[number]);
    } else if (!expected.empty()) {
      const auto gone = std::next(expected.begin(), static_cast<ptrdiff_t>(random.Below(expected.size())));
      if (random.Chance(0.3)) {
        table.Hold(gone->first);
        held.insert(gone->first);
      }
      table.Remove(gone->first);
      expected.erase(gone);
    }
    if (!held.empty() && random.Chance(0.2)) {
      table.Release(*held.begin());
      held.erase(held.begin());
    }
    if (i % 100 != 0) continue;
    for (const auto& [number, queue_pair] : expected) ASSERT_EQ(table.Find(number), queue_pair);
    for (const uint32_t number : held) ASSERT_EQ(table.Find(number), nullptr);
  }
}

}  // namespace
}  // namespace tokamak::verbs::soft

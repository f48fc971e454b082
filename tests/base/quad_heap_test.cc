#include "lib/base/containers/quad_heap.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "lib/base/random.h"

namespace tokamak::base {
namespace {

struct Number {
  bool Before(const Number& other) const { return value < other.value; }
  uint64_t value;
};

std::vector<uint64_t> Drain(QuadHeap<Number>* heap) {
  std::vector<uint64_t> drained;
  for (; !heap->empty(); heap->PopFront()) drained.push_back(heap->front().value);
  return drained;
}

TEST(QuadHeapTest, GivesTheLeastFirst) {
  QuadHeap<Number> heap;
  for (uint64_t value : {7, 3, 9, 1, 5, 8}) heap.Push({value});
  EXPECT_EQ(heap.size(), 6u);
  EXPECT_EQ(Drain(&heap), (std::vector<uint64_t>{1, 3, 5, 7, 8, 9}));
}

TEST(QuadHeapTest, TheFrontMayBeReplacedByAnyItem) {
  QuadHeap<Number> heap;
  for (uint64_t value : {2, 4, 6, 8, 10, 12}) heap.Push({value});
  heap.ReplaceFront({3});
  EXPECT_EQ(heap.front().value, 3u);
  heap.ReplaceFront({11});
  EXPECT_EQ(Drain(&heap), (std::vector<uint64_t>{4, 6, 8, 10, 11, 12}));
}

TEST(QuadHeapTest, RemainingItemsAreInOrderAfterARemoval) {
  for (uint64_t size = 0; size < 60; ++size) {
    QuadHeap<Number> heap;
    std::vector<uint64_t> odd;
    for (uint64_t i = 0; i < size; ++i) heap.Push({(i * 61) % size});  // a prime: each number once
    for (uint64_t i = 1; i < size; i += 2) odd.push_back(i);
    heap.RemoveIf([](const Number& number) { return number.value % 2 == 0; });
    EXPECT_EQ(Drain(&heap), odd);
  }
}

// Against a sorted set, with everything at random.
TEST(QuadHeapTest, BehavesAsASortedSet) {
  Random random(1);
  QuadHeap<Number> heap;
  std::multiset<uint64_t> model;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t dice = random.Below(5);
    const uint64_t value = random.Below(1000);
    if (dice < 2 || model.empty()) {
      heap.Push({value});
      model.insert(value);
    } else if (dice < 4) {
      heap.PopFront();
      model.erase(model.begin());
    } else {
      heap.ReplaceFront({value});
      model.erase(model.begin());
      model.insert(value);
    }
    ASSERT_EQ(heap.size(), model.size());
    if (!model.empty()) {
      ASSERT_EQ(heap.front().value, *model.begin());
    }
  }
}

}  // namespace
}  // namespace tokamak::base

#include "lib/base/containers/indexed_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lib/base/random.h"

namespace tokamak::base {
namespace {

struct HeapItem {
  uint64_t rank = 0;
  uint64_t number = 0;  // decides among equal ranks
  size_t position = SIZE_MAX;
};

struct ByRank {
  bool Before(const HeapItem* a, const HeapItem* b) const {
    return a->rank != b->rank ? a->rank < b->rank : a->number < b->number;
  }
  void Place(HeapItem* item, size_t position) const { item->position = position; }
};

using Heap = IndexedHeap<HeapItem*, ByRank>;

TEST(IndexedHeapTest, TheFirstIsTheLeast) {
  Heap heap;
  HeapItem a{3, 1}, b{1, 2}, c{2, 3};
  for (HeapItem* item : {&a, &b, &c}) heap.Push(item);
  for (HeapItem* item : {&b, &c, &a}) {
    EXPECT_EQ(heap.front(), item);
    EXPECT_EQ(item->position, 0u);
    heap.Remove(0);
    EXPECT_EQ(item->position, Heap::kNowhere);
  }
  EXPECT_TRUE(heap.empty());
}

TEST(IndexedHeapTest, TheLastItemIsRemovedLikeAnyOther) {
  Heap heap;
  HeapItem a{1, 1}, b{2, 2};
  heap.Push(&a);
  heap.Push(&b);
  heap.Remove(b.position);
  EXPECT_EQ(b.position, Heap::kNowhere);
  EXPECT_EQ(heap.front(), &a);
  EXPECT_EQ(heap.size(), 1u);
}

// Against a search through all, with everything at random.
TEST(IndexedHeapTest, ItemsThatAreMovedAndRemovedAtRandomKeepTheirOrder) {
  Random random(1);
  Heap heap;
  std::vector<HeapItem> items(60);
  for (size_t i = 0; i < items.size(); ++i) items[i].number = i;
  for (int step = 0; step < 50'000; ++step) {
    HeapItem& item = items[random.Below(items.size())];
    if (item.position == Heap::kNowhere) {
      item.rank = random.Below(20);
      heap.Push(&item);
    } else if (random.Chance(0.4)) {
      heap.Remove(item.position);
    } else {
      item.rank = random.Below(20);
      heap.Update(item.position, &item);
    }
    HeapItem* least = nullptr;
    size_t held = 0;
    for (HeapItem& one : items) {
      if (one.position == Heap::kNowhere) continue;
      ++held;
      if (least == nullptr || ByRank().Before(&one, least)) least = &one;
    }
    ASSERT_EQ(heap.size(), held);
    if (least != nullptr) {
      ASSERT_EQ(heap.front(), least);
    }
  }
}

}  // namespace
}  // namespace tokamak::base

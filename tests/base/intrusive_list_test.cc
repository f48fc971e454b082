#include "lib/base/containers/intrusive_list.h"

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

struct Item {
  explicit Item(int v) : value(v) {}
  int value;
  Link<Item> link;
};

TEST(IntrusiveListTest, RemovesFromAnywhere) {
  IntrusiveList<Item, &Item::link> list;
  Item a(1), b(2), c(3);
  list.PushBack(&a);
  list.PushBack(&b);
  list.PushBack(&c);
  list.Remove(&b);
  EXPECT_FALSE(list.Listed(&b));
  EXPECT_EQ(list.first(), &a);
  EXPECT_EQ(list.Next(&a), &c);
  list.Remove(&c);
  EXPECT_EQ(list.Next(&a), nullptr);
  list.PushBack(&b);
  EXPECT_EQ(list.PopFront(), &a);
  EXPECT_EQ(list.PopFront(), &b);
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveListTest, GrowsAtBothEnds) {
  IntrusiveList<Item, &Item::link> list;
  Item a(1), b(2), c(3);
  list.PushFront(&b);
  list.PushFront(&a);
  list.PushBack(&c);
  EXPECT_EQ(list.size(), 3u);
  for (Item* item : {&a, &b, &c}) EXPECT_EQ(list.PopFront(), item);
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace tokamak::base

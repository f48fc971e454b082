#include "lib/base/containers/numbered_table.h"

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

struct Item {
  explicit Item(int v) : value(v) {}
  int value;
  Link<Item> table_link;
};

TEST(NumberedTableTest, FindsByNumberAndVisitsInOrder) {
  NumberedTable<Item> table;
  Item* a = table.Claim(1);
  Item* b = table.Claim(2);
  table.Bind(20, b);
  table.Bind(10, a);
  EXPECT_EQ(table.Find(10), a);
  EXPECT_EQ(table.Find(20), b);
  EXPECT_EQ(table.Find(30), nullptr);
  EXPECT_EQ(table.first(), a);
  EXPECT_EQ(table.Next(a), b);
  table.Unbind(10);
  EXPECT_EQ(table.Find(10), nullptr);
  table.Release(a);
  EXPECT_EQ(table.first(), b);
  EXPECT_EQ(table.size(), 1u);
}

TEST(NumberedTableTest, ReusesMemory) {
  NumberedTable<Item> table;
  Item* a = table.Claim(1);
  table.Release(a);
  EXPECT_EQ(table.Claim(2), a);
}

}  // namespace
}  // namespace tokamak::base

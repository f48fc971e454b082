#include "lib/cli/common/natural_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tokamak::cli {
namespace {

TEST(NaturalOrderTest, NumbersInNamesCountAsNumbers) {
  const std::vector<std::string> in_order = {"",     "n",    "n1",   "n2",           "n02",          "n10",
                                             "n10a", "n10b", "node", "node-2-rack1", "node-2-rack12"};
  for (size_t i = 0; i < in_order.size(); ++i) {
    for (size_t j = 0; j < in_order.size(); ++j) {
      if (in_order[i] == "n02" || in_order[j] == "n02") continue;
      EXPECT_EQ(NaturallyBefore(in_order[i], in_order[j]), i < j) << in_order[i] << " " << in_order[j];
    }
  }
}

TEST(NaturalOrderTest, LeadingZerosDecideOnlyBetweenOtherwiseEqualNames) {
  EXPECT_TRUE(NaturallyBefore("n02", "n2"));
  EXPECT_FALSE(NaturallyBefore("n2", "n02"));
  EXPECT_TRUE(NaturallyBefore("n02", "n3"));
  EXPECT_TRUE(NaturallyBefore("n2a", "n02b"));
  EXPECT_TRUE(NaturallyBefore("n0", "n00000000000000000000000001"));
  EXPECT_TRUE(NaturallyBefore("99999999999999999999", "100000000000000000000")) << "beyond 64 bits";
}

}  // namespace
}  // namespace tokamak::cli

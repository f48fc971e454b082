#include "lib/base/text/nearest_name.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

TEST(NearestNameTest, TheNearestNameIsFound) {
  const std::vector<std::string> names = {"memory", "listen", "lease", "log-level", "name"};
  EXPECT_EQ(NearestName("memry", names), "memory");    // left out
  EXPECT_EQ(NearestName("memoory", names), "memory");  // put in
  EXPECT_EQ(NearestName("lesten", names), "listen");   // changed
  EXPECT_EQ(NearestName("naem", names), "name");       // swapped
  EXPECT_EQ(NearestName("log_level", names), "log-level");
}

TEST(NearestNameTest, NoDistantNameIsProposed) {
  EXPECT_EQ(NearestName("colour", {"memory", "listen"}), "");
  EXPECT_EQ(NearestName("", {"memory"}), "");
  EXPECT_EQ(NearestName("ab", {"cb"}), "");
  EXPECT_EQ(NearestName("memory", {}), "");
}

}  // namespace
}  // namespace tokamak::base

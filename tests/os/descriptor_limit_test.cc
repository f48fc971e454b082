// A program may have as many descriptors as its hard limit allows.
#include "lib/os/process/descriptor_limit.h"

#include <sys/resource.h>

#include "gtest/gtest.h"

namespace tokamak::os {
namespace {

TEST(DescriptorLimitTest, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = 100;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(RaiseDescriptorLimit(), before.rlim_max);
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, before.rlim_max);
  EXPECT_EQ(RaiseDescriptorLimit(), before.rlim_max) << "again changes nothing";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace tokamak::os

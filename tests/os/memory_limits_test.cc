// Huge pages as a made tree of /proc and /sys shows them.
#include "lib/os/memory_limits.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/short_folder.h"

namespace tokamak::os {
namespace {

class FreeHugePagesTest : public ::testing::Test {
 protected:
  FreeHugePagesTest() {
    Put("proc/meminfo", "HugePages_Total: 100\nHugePages_Free: 90\nHugePages_Rsvd: 30\nHugepagesize: 2048 kB\n");
  }

  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.Path(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  uint64_t Free() const { return FreeHugePages(root_.path()).free; }

  const testing_support::ShortFolder root_;
};

TEST_F(FreeHugePagesTest, PromisedPagesAreNotFree) {
  EXPECT_EQ(FreeHugePages(root_.path()).page_size, uint64_t{2} << 20);
  EXPECT_EQ(Free(), 60u);
}

TEST_F(FreeHugePagesTest, AContainerWithoutAQuotaHasNoPages) {
  Put("proc/self/cgroup", "0::/\n");
  Put("sys/fs/cgroup/hugetlb.2MB.max", "0\n");
  EXPECT_EQ(Free(), 0u);
}

TEST_F(FreeHugePagesTest, TheLowestBoundOfTheEnclosingGroupsCounts) {
  Put("proc/self/cgroup", "0::/pods/one\n");
  Put("sys/fs/cgroup/pods/one/hugetlb.2MB.max", "max\n");
  EXPECT_EQ(Free(), 60u);
  Put("sys/fs/cgroup/pods/hugetlb.2MB.max", std::to_string(10 << 20) + "\n");
  EXPECT_EQ(Free(), 5u);
}

TEST_F(FreeHugePagesTest, TheOlderControlGroupsCountToo) {
  Put("proc/self/cgroup", "7:hugetlb:/docker/x\n3:memory:/docker/x\n");
  Put("sys/fs/cgroup/hugetlb/docker/x/hugetlb.2MB.limit_in_bytes", std::to_string(4 << 20) + "\n");
  EXPECT_EQ(Free(), 2u);
}

TEST_F(FreeHugePagesTest, PagesOfOthersInTheGroupAreNotFree) {
  Put("proc/self/cgroup", "0::/pods/one\n");
  Put("sys/fs/cgroup/pods/one/hugetlb.2MB.max", std::to_string(40 << 20) + "\n");
  EXPECT_EQ(Free(), 20u);
  EXPECT_TRUE(FreeHugePages(root_.path()).by_group);
  Put("sys/fs/cgroup/pods/one/hugetlb.2MB.current", std::to_string(6 << 20) + "\n");
  EXPECT_EQ(Free(), 17u);
  Put("sys/fs/cgroup/pods/one/hugetlb.2MB.rsvd.current", std::to_string(30 << 20) + "\n");
  EXPECT_EQ(Free(), 5u) << "mapped, and mostly not touched yet";
  Put("sys/fs/cgroup/pods/hugetlb.2MB.max", std::to_string(100 << 20) + "\n");
  Put("sys/fs/cgroup/pods/hugetlb.2MB.current", std::to_string(96 << 20) + "\n");
  EXPECT_EQ(Free(), 2u) << "the group around it, with other groups in it";
  Put("sys/fs/cgroup/pods/hugetlb.2MB.current", std::to_string(102 << 20) + "\n");
  EXPECT_EQ(Free(), 0u) << "the bound was lowered";
}

TEST_F(FreeHugePagesTest, PagesOfOthersInAnOlderControlGroupAreNotFree) {
  Put("proc/self/cgroup", "7:hugetlb:/docker/x\n3:memory:/docker/x\n");
  Put("sys/fs/cgroup/hugetlb/docker/x/hugetlb.2MB.limit_in_bytes", std::to_string(40 << 20) + "\n");
  Put("sys/fs/cgroup/hugetlb/docker/x/hugetlb.2MB.usage_in_bytes", std::to_string(6 << 20) + "\n");
  EXPECT_EQ(Free(), 17u);
  Put("sys/fs/cgroup/hugetlb/docker/x/hugetlb.2MB.rsvd.usage_in_bytes", std::to_string(30 << 20) + "\n");
  EXPECT_EQ(Free(), 5u);
}

TEST_F(FreeHugePagesTest, ABoundBeyondTheFreePagesChangesNothing) {
  Put("proc/self/cgroup", "0::/pods/one\n");
  Put("sys/fs/cgroup/pods/one/hugetlb.2MB.max", std::to_string(120 << 20) + "\n");
  EXPECT_EQ(Free(), 60u);
  EXPECT_FALSE(FreeHugePages(root_.path()).by_group);
}

TEST_F(FreeHugePagesTest, AKernelWithoutHugePagesHasNone) {
  Put("proc/meminfo", "MemTotal: 1000 kB\n");
  EXPECT_EQ(FreeHugePages(root_.path()).page_size, 0u);
}

}  // namespace
}  // namespace tokamak::os

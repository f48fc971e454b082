#include "lib/verbs/user/sysfs_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::user {
namespace {

class SysfsTreeTest : public ::testing::Test {
 protected:
  SysfsTreeTest() : parent_(std::string(std::getenv("TEST_TMPDIR")) + "/XXXXXX") {
    EXPECT_NE(mkdtemp(parent_.data()), nullptr);
    devices_.push_back(MakeIdentity(0, Address::Parse("10.1.2.3").value(), "eth0"));
  }

  std::string Content(const std::string& path) {
    std::ifstream file(*tree_ + "/class/" + path);
    std::string line;
    std::getline(file, line);
    return line;
  }

  std::string parent_;
  std::vector<Identity> devices_;
  absl::StatusOr<std::string> tree_;
};

TEST_F(SysfsTreeTest, ADeviceIsFoundAsTheKernelShowsIt) {
  tree_ = MakeSysfsTree(parent_, devices_);
  ASSERT_TRUE(tree_.ok()) << tree_.status();
  EXPECT_EQ(Content("infiniband_verbs/abi_version"), "6");
  EXPECT_EQ(Content("infiniband_verbs/uverbs0/ibdev"), "rxe_tok0");
  EXPECT_EQ(Content("infiniband_verbs/uverbs0/dev"), "231:192");
  EXPECT_EQ(Content("infiniband/rxe_tok0/ports/1/gids/0"), "0000:0000:0000:0000:0000:ffff:0a01:0203");
  EXPECT_EQ(Content("infiniband/rxe_tok0/ports/1/gid_attrs/types/0"), "RoCE v2");
  EXPECT_EQ(Content("infiniband/rxe_tok0/ports/1/gid_attrs/ndevs/0"), "eth0");
}

TEST_F(SysfsTreeTest, TheSameDevicesHaveOneFolderAndOthersAnother) {
  tree_ = MakeSysfsTree(parent_, devices_);
  const auto again = MakeSysfsTree(parent_, devices_);
  ASSERT_TRUE(tree_.ok() && again.ok());
  EXPECT_EQ(*tree_, *again);
  devices_.push_back(MakeIdentity(1, Address::Parse("10.1.2.4").value(), "eth0"));
  const auto other = MakeSysfsTree(parent_, devices_);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(*tree_, *other);
}

TEST_F(SysfsTreeTest, AFolderThatOthersMayWriteIsNotUsed) {
  tree_ = MakeSysfsTree(parent_, devices_);
  ASSERT_TRUE(tree_.ok());
  ASSERT_EQ(chmod(tree_->c_str(), 0777), 0);
  const auto again = MakeSysfsTree(parent_, devices_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_NE(*again, *tree_);
}

TEST_F(SysfsTreeTest, WhatAKilledProcessLeftIsRemovedWhenItIsOld) {
  const std::string left = absl::StrCat(parent_, "/tokamak-verbs-", geteuid(), "-1234.abcdef");
  const std::string fresh = absl::StrCat(parent_, "/tokamak-verbs-", geteuid(), "-1234.ghijkl");
  for (const std::string& folder : {left, fresh}) ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::ofstream(left + "/file") << "half";
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, left.c_str(), long_ago, 0), 0);
  tree_ = MakeSysfsTree(parent_, devices_);
  ASSERT_TRUE(tree_.ok()) << tree_.status();
  EXPECT_NE(access(left.c_str(), F_OK), 0);
  EXPECT_EQ(access(fresh.c_str(), F_OK), 0) << "perhaps somebody is at it";
}

TEST_F(SysfsTreeTest, AParentThatIsNotThereIsSaid) { EXPECT_FALSE(MakeSysfsTree(parent_ + "/nowhere", devices_).ok()); }

}  // namespace
}  // namespace tokamak::verbs::user

#include "lib/verbs/kernel/sysfs_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tokamak::verbs::kernel {
namespace {

namespace fs = std::filesystem;

class SysfsTreeTest : public ::testing::Test {
 protected:
  SysfsTreeTest() : parent_(std::string(std::getenv("TEST_TMPDIR")) + "/XXXXXX") {
    EXPECT_NE(mkdtemp(parent_.data()), nullptr);
    devices_.push_back(MakeIdentity(0, Address::Parse("10.1.2.3").value(), "eth0"));
  }

  std::unique_ptr<SysfsTree> Open() const {
    absl::StatusOr<std::unique_ptr<SysfsTree>> tree = SysfsTree::Open(parent_, devices_);
    EXPECT_TRUE(tree.ok()) << tree.status();
    return tree.ok() ? *std::move(tree) : nullptr;
  }

  static std::string Content(const SysfsTree& tree, const std::string& path) {
    std::ifstream file(tree.path() + "/class/" + path);
    std::string line;
    std::getline(file, line);
    return line;
  }

  // How many folders and files are below the parent.
  size_t Entries() const {
    const fs::recursive_directory_iterator entries(parent_);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  std::string parent_;
  std::vector<Identity> devices_;
};

TEST_F(SysfsTreeTest, ADeviceIsFoundAsTheKernelShowsIt) {
  const std::unique_ptr<SysfsTree> tree = Open();
  EXPECT_EQ(Content(*tree, "infiniband_verbs/abi_version"), "6");
  EXPECT_EQ(Content(*tree, "infiniband_verbs/uverbs0/ibdev"), "rxe_tok0");
  EXPECT_EQ(Content(*tree, "infiniband_verbs/uverbs0/dev"), "231:192");
  EXPECT_EQ(Content(*tree, "infiniband/rxe_tok0/ports/1/gids/0"), "0000:0000:0000:0000:0000:ffff:0a01:0203");
  EXPECT_EQ(Content(*tree, "infiniband/rxe_tok0/ports/1/gid_attrs/types/0"), "RoCE v2");
  EXPECT_EQ(Content(*tree, "infiniband/rxe_tok0/ports/1/gid_attrs/ndevs/0"), "eth0");
  EXPECT_TRUE(fs::exists(tree->path() + "/dev/infiniband/uverbs0"));
}

TEST_F(SysfsTreeTest, TheSameDevicesHaveOneFolderAndOthersAnother) {
  const std::unique_ptr<SysfsTree> tree = Open();
  const std::unique_ptr<SysfsTree> again = Open();
  EXPECT_EQ(tree->path(), again->path());
  devices_.push_back(MakeIdentity(1, Address::Parse("10.1.2.4").value(), "eth0"));
  EXPECT_NE(Open()->path(), tree->path());
}

TEST_F(SysfsTreeTest, TheLastUserRemovesIt) {
  std::unique_ptr<SysfsTree> tree = Open();
  std::unique_ptr<SysfsTree> again = Open();
  tree.reset();
  EXPECT_EQ(Content(*again, "infiniband_verbs/uverbs0/ibdev"), "rxe_tok0");
  again.reset();
  EXPECT_EQ(Entries(), 0u);
}

// As /sys itself: a service lists devices as root, and opens one when it has given up its rights.
TEST_F(SysfsTreeTest, EverybodyMayReadItWhateverTheUmaskSays) {
  const mode_t before = umask(0077);
  const std::unique_ptr<SysfsTree> tree = Open();
  umask(before);
  for (const fs::path& path : {fs::path(tree->path()), fs::path(tree->path()) / "class/infiniband/rxe_tok0/ports/1"}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms(0755)) << path;
  }
  EXPECT_EQ(fs::status(tree->path() + "/class/infiniband/rxe_tok0/node_guid").permissions(), fs::perms(0644));
}

// Somebody cleans temporary files up, and leaves folders, or other files.
TEST_F(SysfsTreeTest, MissingFilesAreMadeAgain) {
  const std::unique_ptr<SysfsTree> tree = Open();
  const size_t whole = Entries();
  const std::string gid = "infiniband/rxe_tok0/ports/1/gids/0";
  for (const std::string& removed : {gid, std::string("infiniband/rxe_tok0/ports"), std::string()}) {
    ASSERT_GT(fs::remove_all(tree->path() + "/class/" + removed), 0u);
    const std::unique_ptr<SysfsTree> next = Open();
    EXPECT_EQ(next->path(), tree->path());
    EXPECT_EQ(Content(*next, gid), "0000:0000:0000:0000:0000:ffff:0a01:0203");
    EXPECT_EQ(Entries(), whole);
  }
  std::ofstream(tree->path() + "/class/" + gid) << "half";
  ASSERT_TRUE(tree->Complete().ok());
  EXPECT_EQ(Content(*tree, gid), "0000:0000:0000:0000:0000:ffff:0a01:0203");
}

TEST_F(SysfsTreeTest, AUserSeesThatItIsGone) {
  const std::unique_ptr<SysfsTree> tree = Open();
  EXPECT_TRUE(tree->is_there());
  fs::remove_all(tree->path());
  EXPECT_FALSE(tree->is_there());
  const std::unique_ptr<SysfsTree> again = Open();
  EXPECT_TRUE(again->is_there());
  EXPECT_FALSE(tree->is_there()) << "another one is in its place";
}

TEST_F(SysfsTreeTest, AFolderThatOthersMayWriteIsNotUsed) {
  const std::unique_ptr<SysfsTree> tree = Open();
  ASSERT_EQ(chmod(tree->path().c_str(), 0777), 0);
  EXPECT_FALSE(tree->is_there());
  EXPECT_NE(Open()->path(), tree->path());
}

// Processes that begin and end at once, all with the same devices.
TEST_F(SysfsTreeTest, EachOfManyFindsItWholeAndTheLastRemovesIt) {
  constexpr int kProcesses = 8;
  constexpr int kRounds = 30;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int round = 0; round < kRounds; ++round) {
        const absl::StatusOr<std::unique_ptr<SysfsTree>> tree = SysfsTree::Open(parent_, devices_);
        if (!tree.ok()) _exit(1);
        if (Content(**tree, "infiniband_verbs/uverbs0/ibdev") != "rxe_tok0") _exit(2);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(SysfsTreeTest, FilesOfAKilledProcessAreRemovedWhenOld) {
  const std::string left = absl::StrCat(parent_, "/tokamak-verbs-", geteuid(), "-1234.abcdef");
  const std::string fresh = absl::StrCat(parent_, "/tokamak-verbs-", geteuid(), "-1234.ghijkl");
  for (const std::string& folder : {left, fresh}) ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::ofstream(left + "/file") << "half";
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, left.c_str(), long_ago, 0), 0);
  const std::unique_ptr<SysfsTree> tree = Open();
  EXPECT_NE(access(left.c_str(), F_OK), 0);
  EXPECT_EQ(access(fresh.c_str(), F_OK), 0) << "perhaps somebody is at it";
}

TEST_F(SysfsTreeTest, AMissingParentIsReported) { EXPECT_FALSE(SysfsTree::Open(parent_ + "/nowhere", devices_).ok()); }

}  // namespace
}  // namespace tokamak::verbs::kernel

#include "lib/cli/cluster/demo_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/short_folder.h"

namespace tokamak::cli {
namespace {

namespace fs = std::filesystem;

class DemoFilesTest : public testing::Test {
 protected:
  void Make(const std::string& name, size_t size) {
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path());
    std::ofstream(folder_ + "/" + name) << std::string(size, 'x');
  }

  const testing_support::ShortFolder where_;
  const std::string folder_ = where_.long_path();
};

TEST_F(DemoFilesTest, ClassesEndAtTheirBounds) {
  EXPECT_EQ(ClassOf(1), 0u);
  EXPECT_EQ(ClassOf(1024), 0u);
  EXPECT_EQ(ClassOf(1025), 1u);
  EXPECT_EQ(ClassOf(16 << 20), 3u);
  EXPECT_EQ(ClassOf(UINT64_MAX), SizeClasses().size() - 1);
}

TEST_F(DemoFilesTest, FilesOfAllClassesComeSortedBySizeWithTheirHashes) {
  Make("a", 1);
  Make("deep/er/b", 3000);
  Make("c", 100'000);
  Make("d", 2 << 20);
  const auto files = ChooseFiles({folder_}, 1 << 20, 1 << 30);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 4u);
  EXPECT_EQ(files->front().bytes, 1u);
  EXPECT_EQ(files->back().bytes, uint64_t{2} << 20);
  EXPECT_EQ(files->front().sha256, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881");
}

TEST_F(DemoFilesTest, EmptyFilesLinksAndTooLargeFilesAreSkipped) {
  Make("a", 10);
  Make("empty", 0);
  Make("large", 5000);
  fs::create_symlink(folder_ + "/a", folder_ + "/link");
  const auto files = ChooseFiles({folder_}, 1, 1000);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0].path, folder_ + "/a");
}

TEST_F(DemoFilesTest, TheSameFilesGiveTheSameChoice) {
  for (int i = 0; i < 100; ++i) Make("f" + std::to_string(i), static_cast<size_t>(10 + i));
  const auto first = ChooseFiles({folder_}, 1, 1 << 20);
  const auto second = ChooseFiles({folder_}, 1, 1 << 20);
  ASSERT_TRUE(first.ok() && second.ok());
  ASSERT_EQ(first->size(), second->size());
  EXPECT_LT(first->size(), 100u);
  for (size_t i = 0; i < first->size(); ++i) EXPECT_EQ((*first)[i].path, (*second)[i].path);
}

TEST_F(DemoFilesTest, AnEmptyChoiceIsReportedWithTheRemedy) {
  for (const std::string& folder : {folder_, folder_ + "/missing"}) {
    const auto files = ChooseFiles({folder}, 1, 1 << 20);
    EXPECT_EQ(files.status().code(), absl::StatusCode::kNotFound);
    EXPECT_NE(files.status().message().find("--from"), std::string::npos);
  }
}

TEST_F(DemoFilesTest, UnreadableFilesAreReported) {
  EXPECT_EQ(ReadFile(folder_ + "/missing").status().code(), absl::StatusCode::kNotFound);
  Make("a", 5);
  EXPECT_EQ(ReadFile(folder_ + "/a")->size(), 5u);
}

}  // namespace
}  // namespace tokamak::cli

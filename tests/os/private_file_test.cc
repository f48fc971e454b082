#include "lib/os/private_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/support/short_folder.h"

namespace tokamak::os {
namespace {

constexpr char kWhat[] = "the test's file";

class PrivateFileTest : public ::testing::Test {
 protected:
  std::string Written(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.Path("file");
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  testing_support::ShortFolder folder_;
};

TEST_F(PrivateFileTest, ATextIsReadUpToTheBound) {
  const auto text = ReadPrivateFile(kWhat, Written("0123456789"), 10);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "0123456789");
  const auto longer = ReadPrivateFile(kWhat, Written("0123456789a"), 10);
  EXPECT_EQ(longer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(longer.status().message(), "more than 10 bytes")) << longer.status();
}

TEST_F(PrivateFileTest, AFileThatIsMissingIsNamed) {
  const auto missing = ReadPrivateFile(kWhat, folder_.Path("missing"), 10);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(missing.status().message(), folder_.Path("missing"))) << missing.status();
  EXPECT_EQ(ExposureOf(kWhat, folder_.Path("missing")), "");
}

TEST_F(PrivateFileTest, OnlyWhatEverybodyMayOpenIsExposed) {
  for (const mode_t mode : {0600, 0400, 0640, 0660}) EXPECT_EQ(ExposureOf(kWhat, Written("x", mode)), "") << mode;
  EXPECT_TRUE(absl::StrContains(ExposureOf(kWhat, Written("x", 0644)), "may read the test's file"));
  EXPECT_TRUE(absl::StrContains(ExposureOf(kWhat, Written("x", 0666)), "may change the test's file"));
  EXPECT_EQ(ExposureOf(kWhat, "/dev/null"), "") << "no file that keeps anything";
}

TEST_F(PrivateFileTest, ANewFileIsItsUsersAloneAndNoFileIsReplaced) {
  const std::string path = folder_.Path("new");
  ASSERT_TRUE(CreatePrivateFile(path, "secret").ok());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(*ReadPrivateFile(kWhat, path, 100), "secret");
  EXPECT_TRUE(absl::IsAlreadyExists(CreatePrivateFile(path, "other")));
  EXPECT_EQ(*ReadPrivateFile(kWhat, path, 100), "secret");
  EXPECT_EQ(CreatePrivateFile(folder_.Path("no/folder"), "x").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PrivateFileTest, AFullDiskLeavesNoFile) {
  const std::string link = folder_.Path("full");
  ASSERT_EQ(symlink("/dev/full", link.c_str()), 0);
  EXPECT_TRUE(absl::IsAlreadyExists(CreatePrivateFile(link, "x"))) << "no link is followed";
}

}  // namespace
}  // namespace tokamak::os

#include "lib/daemon/flags/secret_file.h"

#include <sys/stat.h>

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/support/short_folder.h"

namespace tokamak::daemon {
namespace {

class SecretFileTest : public testing::Test {
 protected:
  std::string Written(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.Path("secret");
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  void ExpectRefused(const std::string& path, const std::string& why) {
    const auto secrets = ReadSecretFile(path);
    EXPECT_EQ(secrets.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(secrets.status().message(), path)) << secrets.status();
    EXPECT_TRUE(absl::StrContains(secrets.status().message(), why)) << secrets.status();
  }

  testing_support::ShortFolder folder_;
};

TEST_F(SecretFileTest, ANewFileIsReadAndNoTwoAreAlike) {
  const std::string one = NewSecretFile(), two = NewSecretFile();
  EXPECT_NE(one, two);
  const auto secrets = ReadSecretFile(Written(one));
  ASSERT_TRUE(secrets.ok()) << secrets.status();
  EXPECT_EQ((*secrets)->size(), 1u);
  EXPECT_TRUE(absl::StrContains(one, (*secrets)->first().id().ToString())) << "its comment says which one it is";
  const auto both = ReadSecretFile(Written(two + one));
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ((*both)->at(1).id(), (*secrets)->first().id());
}

TEST_F(SecretFileTest, WhatCannotBeUsedIsNamedWithItsRemedy) {
  ExpectRefused(folder_.Path("missing"), "No such file");
  ExpectRefused(Written(""), "tok secret new");
  ExpectRefused(Written(NewSecretFile(), 0644), "chmod 600");
  ExpectRefused(Written(NewSecretFile() + NewSecretFile() + NewSecretFile()), "line 6");
}

}  // namespace
}  // namespace tokamak::daemon

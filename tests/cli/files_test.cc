#include "lib/cli/files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lib/client/client.h"
#include "tests/client/fake_daemon.h"
#include "tests/support/short_folder.h"

namespace tokamak::cli {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  FilesTest() : client_(*client::Client::Connect(daemon_.path())) {}

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Make(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << text;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  absl::StatusOr<Moved> Get(const std::string& name, const std::string& output) {
    GetSettings settings;
    settings.output = output.empty() ? "" : Path(output);
    settings.timeout = base::Milliseconds(100);
    return GetPath(client_, name, settings);
  }

  void PutRaw(const std::string& name, const std::string& data, const std::string& metadata) {
    const auto bytes = [](const std::string& text) { return std::vector<uint8_t>(text.begin(), text.end()); };
    ASSERT_TRUE(client_.Put(IdOf(name), bytes(data), bytes(metadata)).ok());
  }

  client::FakeDaemon daemon_;
  client::Client client_;
  const testing_support::ShortFolder where_;
  const std::string folder_ = where_.long_path();
};

TEST_F(FilesTest, AFileComesBackWithItsMode) {
  Make("a", "hello");
  chmod(Path("a").c_str(), 0700);
  const auto put = PutPath(client_, Path("a"), "greeting");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->files, 1u);
  EXPECT_EQ(put->bytes, 5u);
  const auto got = Get("greeting", "b");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->bytes, 5u);
  EXPECT_EQ(Read(Path("b")), "hello");
  EXPECT_EQ(fs::status(Path("b")).permissions(), fs::perms::owner_all);
}

TEST_F(FilesTest, AnEmptyFileIsAnObjectToo) {
  Make("empty", "");
  ASSERT_TRUE(PutPath(client_, Path("empty"), "empty").ok());
  const auto got = Get("empty", "out");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(fs::exists(Path("out")));
  EXPECT_EQ(fs::file_size(Path("out")), 0u);
}

TEST_F(FilesTest, AFolderComesBackWhole) {
  Make("d/a", "1");
  Make("d/b/c", "22");
  Make("d/b/empty", "");
  const auto put = PutPath(client_, Path("d"), "tree");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->files, 3u);
  EXPECT_EQ(put->skipped, 0u);
  const auto got = Get("tree", "e");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->files, 3u);
  EXPECT_EQ(Read(Path("e/a")), "1");
  EXPECT_EQ(Read(Path("e/b/c")), "22");
  EXPECT_EQ(fs::file_size(Path("e/b/empty")), 0u);
  const auto removed = RemovePath(client_, "tree");
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(*removed, 4u);
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
}

TEST_F(FilesTest, AnEmptyFolderComesBackEmpty) {
  fs::create_directory(Path("d"));
  ASSERT_TRUE(PutPath(client_, Path("d"), "tree").ok());
  ASSERT_TRUE(Get("tree", "e").ok());
  EXPECT_TRUE(fs::is_empty(Path("e")));
}

TEST_F(FilesTest, LinksToFilesAreFollowedUnderTheirOwnNamesAndOthersAreSkipped) {
  Make("outside", "far");
  Make("d/near", "x");
  fs::create_symlink(Path("outside"), Path("d/link"));
  fs::create_directory_symlink(folder_, Path("d/up"));
  fs::create_symlink(Path("nowhere"), Path("d/dangling"));
  ASSERT_EQ(mkfifo(Path("d/pipe").c_str(), 0600), 0);
  const auto put = PutPath(client_, Path("d"), "tree");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->files, 2u);
  EXPECT_EQ(put->skipped, 3u);
  ASSERT_TRUE(Get("tree", "e").ok());
  EXPECT_EQ(Read(Path("e/link")), "far");
  EXPECT_FALSE(fs::is_symlink(Path("e/link")));
}

TEST_F(FilesTest, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const auto put = PutPath(client_, Path("pipe"), "pipe");
  EXPECT_TRUE(absl::IsInvalidArgument(put.status())) << put.status();
}

TEST_F(FilesTest, WhatIsMissingIsSaid) {
  const auto put = PutPath(client_, Path("missing"), "missing");
  EXPECT_TRUE(absl::IsNotFound(put.status())) << put.status();
  EXPECT_FALSE(Get("missing", "out").ok());
  EXPECT_FALSE(RemovePath(client_, "missing").ok());
  EXPECT_FALSE(fs::exists(Path("out")));
}

TEST_F(FilesTest, ObjectsNeverChange) {
  Make("a", "1");
  ASSERT_TRUE(PutPath(client_, Path("a"), "a").ok());
  const auto again = PutPath(client_, Path("a"), "a");
  EXPECT_TRUE(absl::IsAlreadyExists(again.status()));
  EXPECT_NE(again.status().message().find("tok rm"), std::string::npos);
}

TEST_F(FilesTest, AFolderIsPutWholeOrNotAtAll) {
  Make("d/a", "1");
  Make("d/b", "2");
  Make("other", "3");
  ASSERT_TRUE(PutPath(client_, Path("other"), "tree/b").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(PutPath(client_, Path("d"), "tree").status()));
  EXPECT_FALSE(*client_.Contains(IdOf("tree/a")));
  EXPECT_TRUE(*client_.Contains(IdOf("tree/b")));
}

TEST_F(FilesTest, NamesThatAreNoUtf8AreRefused) {
  Make("a", "1");
  const auto put = PutPath(client_, Path("a"), "b\xff");
  EXPECT_TRUE(absl::IsInvalidArgument(put.status())) << put.status();
  Make("d/c\xff", "1");
  EXPECT_TRUE(absl::IsInvalidArgument(PutPath(client_, Path("d"), "tree").status()));
}

TEST_F(FilesTest, ListedPathsThatLeaveTheirFolderAreRefused) {
  int number = 0;
  for (const std::string path : {"../evil", "/tmp/evil", "a/../../evil", "..", ".", ""}) {
    const std::string name = "tree" + std::to_string(number++);
    PutRaw(name, R"({"files": [")" + path + R"("]})", R"({"name": ")" + name + R"(", "kind": "directory"})");
    PutRaw(name + "/" + path, "bad", "");
    const auto got = Get(name, "deep/out");
    EXPECT_TRUE(absl::IsInvalidArgument(got.status())) << path << ": " << got.status();
  }
  EXPECT_FALSE(fs::exists(Path("deep/evil")));
  EXPECT_FALSE(fs::exists("/tmp/evil"));
}

TEST_F(FilesTest, ANameFromElsewhereNeverLeavesThisFolder) {
  int number = 0;
  for (const std::string own : {"..", ".", "a/..", "/"}) {
    const std::string name = "object" + std::to_string(number++);
    PutRaw(name, R"({"files": []})", R"({"name": ")" + own + R"(", "kind": "directory"})");
    const auto got = Get(name, "");
    EXPECT_TRUE(absl::IsInvalidArgument(got.status())) << own << ": " << got.status();
  }
}

TEST_F(FilesTest, MetadataThatIsNotOursIsTakenAsAFile) {
  for (const std::string metadata : {"", "{", "[1]", R"({"mode": -1})", R"({"mode": "x", "name": 7, "kind": 7})"}) {
    PutRaw("m" + metadata, "bytes", metadata);
    const auto got = Get("m" + metadata, "out");
    ASSERT_TRUE(got.ok()) << metadata << ": " << got.status();
    EXPECT_EQ(Read(Path("out")), "bytes");
  }
}

TEST_F(FilesTest, FortyHexadecimalDigitsAreAnIdEverywhere) {
  Make("a", "1");
  const std::string hex = base::ObjectId::FromName("something").ToHex();
  ASSERT_TRUE(PutPath(client_, Path("a"), hex).ok());
  EXPECT_TRUE(Get(hex, "out").ok());
  EXPECT_TRUE(*client_.Contains(base::ObjectId::FromName("something")));
}

TEST_F(FilesTest, NoPartStaysWhereAFileCannotBeWritten) {
  Make("a", "1");
  ASSERT_TRUE(PutPath(client_, Path("a"), "a").ok());
  fs::create_directory(Path("taken"));
  EXPECT_FALSE(Get("a", "taken").ok());
  EXPECT_FALSE(Get("a", "missing/out").ok());
  size_t entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) entries += entry.exists() ? 1 : 0;
  EXPECT_EQ(entries, 2u);
}

}  // namespace
}  // namespace tokamak::cli

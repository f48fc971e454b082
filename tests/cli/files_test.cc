#include "lib/cli/objects/files.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/fake_daemon.h"
#include "tests/support/short_folder.h"
#include "tokamak/client.h"

namespace tokamak::cli {
namespace {

namespace fs = std::filesystem;

class FilesTest : public testing::Test {
 protected:
  FilesTest() : client_(*Client::Connect(daemon_.path())) {}

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
    settings.timeout = std::chrono::milliseconds(100);
    return GetPath(client_, undo_, name, settings);
  }

  // Gets to the path as it is.
  absl::StatusOr<Moved> GetTo(const std::string& name, const std::string& output) {
    GetSettings settings;
    settings.output = output;
    settings.timeout = std::chrono::milliseconds(100);
    return GetPath(client_, undo_, name, settings);
  }

  // The names of all that is in the folder, sorted.
  std::vector<std::string> Entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      names.push_back(entry.path().lexically_relative(folder_).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  std::string Object(const std::string& name) {
    const auto buffer = client_.Get(IdOf(name), Timeout());
    if (!buffer.ok()) return buffer.status().ToString();
    return {buffer->data().begin(), buffer->data().end()};
  }

  void PutRaw(const std::string& name, const std::string& data, const std::string& metadata,
              const PutOptions& options = {}) {
    const auto bytes = [](const std::string& text) { return std::vector<uint8_t>(text.begin(), text.end()); };
    ASSERT_TRUE(client_.Put(IdOf(name), bytes(data), bytes(metadata), options).ok());
  }
  void PutNamed(const std::string& name, const std::string& data, const std::string& metadata) {
    PutOptions options;
    options.name = name;
    PutRaw(name, data, metadata, options);
  }

  client::FakeDaemon daemon_;
  Client client_;
  Undo undo_;
  const testing_support::ShortFolder where_;
  const std::string folder_ = where_.long_path();
};

TEST_F(FilesTest, AFileComesBackWithItsMode) {
  Make("a", "hello");
  chmod(Path("a").c_str(), 0700);
  const auto put = PutPath(client_, undo_, Path("a"), "greeting");
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
  ASSERT_TRUE(PutPath(client_, undo_, Path("empty"), "empty").ok());
  const auto got = Get("empty", "out");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(fs::exists(Path("out")));
  EXPECT_EQ(fs::file_size(Path("out")), 0u);
}

TEST_F(FilesTest, AFolderComesBackWhole) {
  Make("d/a", "1");
  Make("d/b/c", "22");
  Make("d/b/empty", "");
  const auto put = PutPath(client_, undo_, Path("d"), "tree");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->files, 3u);
  EXPECT_EQ(put->skipped.size(), 0u);
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
  ASSERT_TRUE(PutPath(client_, undo_, Path("d"), "tree").ok());
  ASSERT_TRUE(Get("tree", "e").ok());
  EXPECT_TRUE(fs::is_empty(Path("e")));
}

TEST_F(FilesTest, EmptyFoldersInAFolderComeBack) {
  Make("d/a", "1");
  fs::create_directories(Path("d/x/y"));
  fs::create_directories(Path("d/z"));
  ASSERT_EQ(mkfifo(Path("d/z/pipe").c_str(), 0600), 0);
  ASSERT_TRUE(PutPath(client_, undo_, Path("d"), "tree").ok());
  ASSERT_TRUE(Get("tree", "e").ok());
  EXPECT_TRUE(fs::is_directory(Path("e/x/y")));
  EXPECT_TRUE(fs::is_empty(Path("e/z")));
}

TEST_F(FilesTest, LinksToFilesAreFollowedUnderTheirOwnNamesAndOthersAreSkipped) {
  Make("outside", "far");
  Make("d/near", "x");
  fs::create_symlink(Path("outside"), Path("d/link"));
  fs::create_directory_symlink(folder_, Path("d/up"));
  fs::create_symlink(Path("nowhere"), Path("d/dangling"));
  ASSERT_EQ(mkfifo(Path("d/pipe").c_str(), 0600), 0);
  const auto put = PutPath(client_, undo_, Path("d"), "tree");
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->files, 2u);
  EXPECT_EQ(put->skipped, (std::vector<std::string>{"dangling: a link that leads nowhere", "pipe: a pipe",
                                                    "up: a link to a folder"}));
  ASSERT_TRUE(Get("tree", "e").ok());
  EXPECT_EQ(Read(Path("e/link")), "far");
  EXPECT_FALSE(fs::is_symlink(Path("e/link")));
}

// That somebody named; one in a folder is skipped.
TEST_F(FilesTest, APipeIsReadToItsEnd) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  const std::string text(300'000, 'p');  // more than a pipe holds, and than is read at once
  std::thread writer([&] { std::ofstream(Path("pipe")) << text; });
  const auto put = PutPath(client_, undo_, Path("pipe"), "piped");
  writer.join();
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_EQ(put->bytes, text.size());
  EXPECT_EQ(Object("piped"), text);
}

TEST_F(FilesTest, ASocketIsRefused) {
  const auto put = PutPath(client_, undo_, daemon_.path(), "socket");
  ASSERT_FALSE(put.ok());
  EXPECT_NE(put.status().message().find("cannot read"), std::string::npos) << put.status();
}

TEST_F(FilesTest, AMissingFileIsReported) {
  const auto put = PutPath(client_, undo_, Path("missing"), "missing");
  EXPECT_TRUE(absl::IsNotFound(put.status())) << put.status();
  EXPECT_FALSE(Get("missing", "out").ok());
  EXPECT_FALSE(RemovePath(client_, "missing").ok());
  EXPECT_FALSE(fs::exists(Path("out")));
}

TEST_F(FilesTest, ObjectsNeverChange) {
  Make("a", "1");
  ASSERT_TRUE(PutPath(client_, undo_, Path("a"), "a").ok());
  const auto again = PutPath(client_, undo_, Path("a"), "a");
  EXPECT_TRUE(absl::IsAlreadyExists(again.status()));
  EXPECT_NE(again.status().message().find("tok rm"), std::string::npos);
}

TEST_F(FilesTest, AFolderIsPutWholeOrNotAtAll) {
  Make("d/a", "1");
  Make("d/b", "2");
  Make("other", "3");
  ASSERT_TRUE(PutPath(client_, undo_, Path("other"), "tree/b").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(PutPath(client_, undo_, Path("d"), "tree").status()));
  EXPECT_FALSE(*client_.Contains(IdOf("tree/a")));
  EXPECT_TRUE(*client_.Contains(IdOf("tree/b")));
}

TEST_F(FilesTest, NamesThatAreNoUtf8AreRefused) {
  Make("a", "1");
  const auto put = PutPath(client_, undo_, Path("a"), "b\xff");
  EXPECT_TRUE(absl::IsInvalidArgument(put.status())) << put.status();
  Make("d/c\xff", "1");
  EXPECT_TRUE(absl::IsInvalidArgument(PutPath(client_, undo_, Path("d"), "tree").status()));
}

TEST_F(FilesTest, ListedPathsThatLeaveTheirFolderAreRefused) {
  int number = 0;
  for (const std::string path : {"../evil", "/tmp/evil", "a/../../evil", "..", ".", ""}) {
    const std::string name = "tree" + std::to_string(number++);
    PutRaw(name, R"({"files": [")" + path + R"("]})", R"({"kind": "directory"})");
    PutRaw(name + "/" + path, "bad", "");
    const auto got = Get(name, "deep/out");
    EXPECT_TRUE(absl::IsInvalidArgument(got.status())) << path << ": " << got.status();
  }
  EXPECT_FALSE(fs::exists(Path("deep/evil")));
  EXPECT_FALSE(fs::exists("/tmp/evil"));
}

TEST_F(FilesTest, ANameFromElsewhereNeverLeavesThisFolder) {
  for (const std::string name : {"..", ".", "a/..", "/"}) {
    PutNamed(name, R"({"files": []})", R"({"kind": "directory"})");
    for (const std::string& asked_for : {name, IdOf(name).ToHex()}) {
      const auto got = Get(asked_for, "");
      EXPECT_TRUE(absl::IsInvalidArgument(got.status())) << asked_for << ": " << got.status();
    }
  }
}

TEST_F(FilesTest, AnIdStandsForItsStoredName) {
  Make("a", "1");
  Make("d/b", "2");
  ASSERT_TRUE(PutPath(client_, undo_, Path("a"), "far/greeting").ok());
  ASSERT_TRUE(PutPath(client_, undo_, Path("d"), "tree").ok());
  const auto listed = client_.List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  std::set<std::string> names;
  for (const ObjectInfo& object : *listed) names.insert(object.name);
  EXPECT_EQ(names, (std::set<std::string>{"far/greeting", "tree", "tree/b"}));
  EXPECT_EQ(Get(IdOf("tree").ToHex(), "out")->files, 1u);
  EXPECT_EQ(Read(Path("out/b")), "2");
  fs::create_directory(Path("e"));
  EXPECT_EQ(Get(IdOf("far/greeting").ToHex(), "e")->path, Path("e/greeting"));
  EXPECT_EQ(*NamesBelow(client_, IdOf("tree").ToHex()), std::vector<std::string>{"tree/b"});
  EXPECT_EQ(*RemovePath(client_, IdOf("tree").ToHex()), 2u);
}

TEST_F(FilesTest, AFolderWithoutAStoredNameIsGotByItsNameAlone) {
  Make("d/b", "2");
  const std::string name(PutOptions::kMaxName + 1, 'x');
  ASSERT_TRUE(PutPath(client_, undo_, Path("d"), name).ok());
  const auto listed = client_.List();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_FALSE(listed->empty());
  for (const ObjectInfo& object : *listed) EXPECT_EQ(object.name, "");
  EXPECT_EQ(Get(name, "out")->files, 1u);
  const absl::Status refused = Get(IdOf(name).ToHex(), "again").status();
  EXPECT_EQ(refused.message(), "no name is kept of the folder " + IdOf(name).ToHex() +
                                   ", and its files have names below it: give its name");
  EXPECT_EQ(*RemovePath(client_, name), 2u);
}

TEST_F(FilesTest, ForeignMetadataIsTreatedAsAFile) {
  for (const std::string metadata : {"", "{", "[1]", R"({"mode": -1})", R"({"mode": "x", "kind": 7})"}) {
    PutRaw("m" + metadata, "bytes", metadata);
    const auto got = Get("m" + metadata, "out");
    ASSERT_TRUE(got.ok()) << metadata << ": " << got.status();
    EXPECT_EQ(Read(Path("out")), "bytes");
  }
}

TEST_F(FilesTest, FortyHexadecimalDigitsAreAnIdEverywhere) {
  Make("a", "1");
  const std::string hex = base::ObjectId::FromName("something").ToHex();
  ASSERT_TRUE(PutPath(client_, undo_, Path("a"), hex).ok());
  EXPECT_TRUE(Get(hex, "out").ok());
  EXPECT_TRUE(*client_.Contains(base::ObjectId::FromName("something")));
}

TEST_F(FilesTest, AFileThatCannotBeWrittenLeavesNothing) {
  Make("a", "1");
  Make("d/x/y", "1");
  ASSERT_TRUE(PutPath(client_, undo_, Path("a"), "a").ok());
  ASSERT_TRUE(PutPath(client_, undo_, Path("d"), "tree").ok());
  fs::remove_all(Path("d"));
  fs::create_directories(Path("taken/x/y"));  // a folder where the file shall be
  EXPECT_FALSE(Get("tree", "taken").ok());
  EXPECT_FALSE(Get("a", "missing/out").ok());
  EXPECT_FALSE(Get("tree", "a").ok());
  EXPECT_EQ(Entries(), (std::vector<std::string>{"a", "taken", "taken/x", "taken/x/y"}));
}

TEST_F(FilesTest, AFileGoesIntoAnExistingFolder) {
  PutRaw("far/greeting", "hello", R"({"kind": "file"})");
  fs::create_directory(Path("d"));
  const auto got = Get("far/greeting", "d");
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->path, Path("d/greeting"));
  EXPECT_EQ(Read(Path("d/greeting")), "hello");
  EXPECT_TRUE(Get("far/greeting", "d/").ok());
  const auto missing = Get("far/greeting", "none/");
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  EXPECT_NE(missing.status().message().find("none/"), std::string::npos);
  EXPECT_EQ(Entries(), (std::vector<std::string>{"d", "d/greeting"}));
}

TEST_F(FilesTest, AFailedGetOfAFolderKeepsItsFormerFiles) {
  PutRaw("tree", R"({"files": ["a", "new/b", "missing"], "folders": ["empty"]})", R"({"kind": "directory"})");
  PutRaw("tree/a", "young", "");
  PutRaw("tree/new/b", "young", "");
  Make("out/a", "old");
  EXPECT_FALSE(Get("tree", "out").ok());
  EXPECT_FALSE(Get("tree", "fresh/deep").ok());
  EXPECT_EQ(Read(Path("out/a")), "old");
  EXPECT_EQ(Entries(), (std::vector<std::string>{"out", "out/a"}));
  PutRaw("tree/missing", "late", "");
  ASSERT_TRUE(Get("tree", "out").ok());
  EXPECT_EQ(Read(Path("out/a")), "young");
  EXPECT_EQ(Entries(), (std::vector<std::string>{"out", "out/a", "out/empty", "out/missing", "out/new", "out/new/b"}));
}

TEST_F(FilesTest, AFileReplacesAnExistingOneAndNoPartOfAnother) {
  PutRaw("x", "new", "");
  Make("out", "old and longer");
  const std::string part = "out.part" + std::to_string(getpid());
  Make(part, "of somebody else");
  ASSERT_TRUE(Get("x", "out").ok());
  EXPECT_EQ(Read(Path("out")), "new");
  EXPECT_EQ(Read(Path(part)), "of somebody else");
}

TEST_F(FilesTest, ALinkIsFollowedAndStays) {
  PutRaw("x", "new", "");
  Make("far/target", "old");
  fs::create_symlink("far/target", Path("link"));
  fs::create_symlink(Path("link"), Path("link_to_link"));
  fs::create_symlink("far/later", Path("dangling"));
  fs::create_symlink("round", Path("round"));
  ASSERT_TRUE(Get("x", "link_to_link").ok());
  ASSERT_TRUE(Get("x", "dangling").ok());
  EXPECT_FALSE(Get("x", "round").ok());
  EXPECT_TRUE(fs::is_symlink(Path("link")) && fs::is_symlink(Path("link_to_link")) && fs::is_symlink(Path("dangling")));
  EXPECT_EQ(Read(Path("far/target")), "new");
  EXPECT_EQ(Read(Path("far/later")), "new");
  EXPECT_EQ(Entries().size(), 7u);  // no part
}

// Through links, so that a mistake would replace the link and not the machine's device.
TEST_F(FilesTest, ADeviceIsWrittenThroughAndItsErrorReported) {
  PutRaw("x", "bytes", "");
  fs::create_symlink("/dev/null", Path("null"));
  fs::create_symlink("/dev/full", Path("full"));
  ASSERT_TRUE(Get("x", "null").ok());
  const auto full = Get("x", "full");
  EXPECT_NE(full.status().message().find("No space left"), std::string::npos) << full.status();
  EXPECT_TRUE(fs::is_symlink(Path("null")) && fs::is_symlink(Path("full")));
  EXPECT_TRUE(fs::is_character_file("/dev/null") && fs::is_character_file("/dev/full"));
}

TEST_F(FilesTest, APipeIsWrittenThrough) {
  PutRaw("x", "bytes", "");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = Read(Path("pipe")); });
  EXPECT_TRUE(Get("x", "pipe").ok());
  reader.join();
  EXPECT_EQ(read, "bytes");
  EXPECT_TRUE(fs::is_fifo(Path("pipe")));
}

TEST_F(FilesTest, StandardOutputHoldsTheBytesAlone) {
  PutRaw("x", std::string("b\0tes", 5), "");
  PutRaw("tree", R"({"files": []})", R"({"kind": "directory"})");
  for (const char* output : {"-", "/dev/stdout", "/proc/self/fd/1"}) {
    testing::internal::CaptureStdout();  // a file, to which more is appended
    EXPECT_TRUE(GetTo("x", output).ok());
    EXPECT_TRUE(GetTo("x", output).ok());
    EXPECT_EQ(testing::internal::GetCapturedStdout(), std::string("b\0tesb\0tes", 10)) << output;
    EXPECT_TRUE(absl::IsInvalidArgument(GetTo("tree", output).status()));
  }
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(FilesTest, AnOpenFileOfAnyNumberIsWrittenThrough) {
  PutRaw("x", "bytes", "");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_TRUE(GetTo("x", "/dev/fd/" + std::to_string(ends[1])).ok());
  char read_back[16];
  EXPECT_EQ(read(ends[0], read_back, sizeof read_back), 5);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(FilesTest, AFileThatDoesNotKnowItsSizeIsReadToTheEnd) {
  for (const std::string path :
       {"/proc/self/cmdline", "/sys/kernel/mm/transparent_hugepage/enabled", "/proc/version"}) {
    if (!fs::exists(path)) continue;
    ASSERT_TRUE(PutPath(client_, undo_, path, path).ok()) << path;
    EXPECT_EQ(Object(path), Read(path));
    EXPECT_NE(Object(path), "");
  }
}

TEST_F(FilesTest, AFileThatDoesNotKnowItsSizeAndExceedsTheStoreIsRefused) {
  // Every other page with another protection: a line of /proc/self/maps each.
  constexpr size_t kPages = 26'000;
  const size_t page = static_cast<size_t>(getpagesize());
  void* const memory = mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (size_t i = 0; i < kPages; i += 2) {
    ASSERT_EQ(mprotect(static_cast<char*>(memory) + i * page, page, PROT_READ), 0);
  }
  const auto put = PutPath(client_, undo_, "/proc/self/maps", "maps");
  EXPECT_TRUE(absl::IsResourceExhausted(put.status())) << put.status();
  munmap(memory, kPages * page);
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
}

TEST_F(FilesTest, AFileThatChangesWhileItIsReadIsAnErrorAndLeavesNothing) {
  Make("d/a", "1");
  for (const char* now : {"longer than before", "s", ""}) {
    Make("d/changing", "as it was");
    size_t creates = 0;
    daemon_.Screen(client::Kind::kCreate, [&] {
      if (++creates == 2) Make("d/changing", now);
      return true;
    });
    const auto put = PutPath(client_, undo_, Path("d"), "tree");
    EXPECT_TRUE(absl::IsAborted(put.status())) << put.status();
    EXPECT_NE(put.status().message().find("d/changing"), std::string::npos);
    EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
  }
}

// Without what lets root read everything, while this lives; of this thread.
class WithoutOverride final {
 public:
  WithoutOverride() {
    EXPECT_EQ(syscall(SYS_capget, &header_, before_), 0);
    __user_cap_data_struct less[2] = {before_[0], before_[1]};
    less[0].effective &= ~(uint32_t{1} << CAP_DAC_OVERRIDE | uint32_t{1} << CAP_DAC_READ_SEARCH);
    EXPECT_EQ(syscall(SYS_capset, &header_, less), 0);
  }
  ~WithoutOverride() { EXPECT_EQ(syscall(SYS_capset, &header_, before_), 0); }

 private:
  __user_cap_header_struct header_ = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2] = {};
};

TEST_F(FilesTest, AFolderThatCannotBeReadIsNamed) {
  Make("d/a", "1");
  fs::create_directories(Path("d/closed"));
  fs::permissions(Path("d/closed"), fs::perms::none);
  const WithoutOverride without_override;
  const auto put = PutPath(client_, undo_, Path("d"), "tree");
  EXPECT_NE(put.status().message().find("d/closed: Permission denied"), std::string::npos) << put.status();
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
}

TEST_F(FilesTest, APrefixRemovesAllNamesThatBeginWithIt) {
  for (const std::string name : {"tree/a", "tree/b", "treetop", "other"}) PutNamed(name, "1", "");
  PutRaw("tree/unnamed", "1", "");
  EXPECT_EQ(*RemovePrefix(client_, "tree/"), 2u);
  EXPECT_EQ(*RemovePrefix(client_, "tree/"), 0u);
  EXPECT_FALSE(*client_.Contains(IdOf("tree/a")));
  EXPECT_TRUE(*client_.Contains(IdOf("treetop")) && *client_.Contains(IdOf("other")));
  EXPECT_EQ(*RemovePrefix(client_, "tr"), 1u);
}

}  // namespace
}  // namespace tokamak::cli

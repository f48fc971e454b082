#include "tests/support/short_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "lib/os/epoll_loop.h"
#include "lib/os/process/child_process.h"
#include "lib/os/sockets/unix_socket.h"

namespace tokamak::testing_support {
namespace {

constexpr base::Duration kPatience = base::Seconds(60);

TEST(ShortFolderTest, TakesASocketWhateverTheLengthOfTestTmpdir) {
  const std::string before = getenv("TEST_TMPDIR") != nullptr ? getenv("TEST_TMPDIR") : "";
  const std::string deep = (before.empty() ? "/tmp/" : before + "/") + std::string(150, 'd');
  ASSERT_TRUE(std::filesystem::create_directory(deep));
  setenv("TEST_TMPDIR", deep.c_str(), 1);
  {
    const ShortFolder folder;
    os::EpollLoop loop;
    auto listener = os::UnixListener::Listen(loop, folder.Path("s"), [](os::FileDescriptor) {});
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_TRUE(os::UnixSocket::Connect(folder.Path("s")).ok());
    EXPECT_EQ(folder.Files(), (std::vector<std::string>{"s", "s.lock"}));
  }
  EXPECT_TRUE(std::filesystem::remove(deep)) << "it was left with something in it";
  before.empty() ? unsetenv("TEST_TMPDIR") : setenv("TEST_TMPDIR", before.c_str(), 1);
}

TEST(ShortFolderTest, AnotherProgramKnowsItByTheSameName) {
  const ShortFolder folder;
  os::ChildOptions options;
  options.argv = {"sh", "-c", "echo word > \"$0\"", folder.Path("file")};
  auto child = os::ChildProcess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto end = (*child)->Wait(kPatience);
  ASSERT_TRUE(end.ok() && end->ok());
  std::ifstream file(folder.Path("file"));
  std::string word;
  EXPECT_TRUE(file >> word);
  EXPECT_EQ(word, "word");
}

}  // namespace
}  // namespace tokamak::testing_support

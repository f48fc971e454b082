// A socket's path in a folder that others write in, too: what they do between two of our calls.
#include "lib/os/sockets/unix_address.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/support/short_folder.h"

namespace {

std::function<void()>& AfterBind() {
  static std::function<void()> after_bind;
  return after_bind;
}

}  // namespace

// In place of the C library's.
extern "C" int bind(int socket, const sockaddr* address, socklen_t size) noexcept {
  const long bound = syscall(SYS_bind, socket, address, size);
  if (AfterBind()) AfterBind()();
  return static_cast<int>(bound);
}

namespace tokamak::os {
namespace {

TEST(UnixAddressTest, ALinksTargetIsNotWidened) {
  const testing_support::ShortFolder folder;
  const std::string path = folder.Path("socket"), secret = folder.Path("secret");
  std::ofstream(secret) << "of this user alone";
  ASSERT_EQ(chmod(secret.c_str(), 0600), 0);
  int swapped = 0;
  AfterBind() = [&] {
    if (unlink(path.c_str()) == 0 && symlink(secret.c_str(), path.c_str()) == 0) ++swapped;
  };
  const auto socket = BindSocketPath(path, 1, SocketAccess::kGroup);
  AfterBind() = nullptr;
  ASSERT_EQ(swapped, 1);
  EXPECT_FALSE(socket.ok());
  EXPECT_TRUE(absl::StrContains(socket.status().message(), "cannot listen at ")) << socket.status();
  struct stat file;
  ASSERT_EQ(stat(secret.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
  EXPECT_EQ(unlink(secret.c_str()), 0);
}

}  // namespace
}  // namespace tokamak::os

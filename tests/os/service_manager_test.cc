#include "lib/os/process/service_manager.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "lib/os/epoll_loop.h"
#include "tests/support/short_folder.h"

namespace tokamak::os {
namespace {

constexpr base::Duration kManagerPatience = base::Seconds(60);

// Plays systemd: a socket for the words of the service.
class ServiceManagerTest : public testing::Test {
 protected:
  // `path`, where the first byte may be 0: an abstract name.
  void Listen(const std::string& path) {
    socket_ = FileDescriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    ASSERT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  // Returns the next message, one after the other; empty: none is left.
  std::string Heard() const {
    char words[256];
    const ssize_t size = recv(socket_.get(), words, sizeof words, 0);
    return size <= 0 ? "" : std::string(words, static_cast<size_t>(size));
  }
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }

  testing_support::ShortFolder folder_;
  FileDescriptor socket_;
};

TEST_F(ServiceManagerTest, EachStateIsSentInOneMessage) {
  Listen(folder_.Path("notify"));
  setenv("NOTIFY_SOCKET", folder_.Path("notify").c_str(), 1);
  ServiceManager manager;
  manager.Ready("two\nlines");
  manager.Reloading();
  manager.Stopping("draining");
  EXPECT_EQ(Heard(), "READY=1\nSTATUS=two lines");
  EXPECT_EQ(Heard(), "RELOADING=1");
  EXPECT_EQ(Heard(), "STOPPING=1\nSTATUS=draining");
  EXPECT_EQ(Heard(), "");
  EXPECT_EQ(manager.watchdog(), base::Duration());
}

TEST_F(ServiceManagerTest, AnAbstractAddressIsAcceptedToo) {
  const std::string name = absl::StrCat("tokamak-notify-", getpid());
  Listen(std::string(1, '\0') + name);
  setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  ServiceManager().Ready("here");
  EXPECT_EQ(Heard(), "READY=1\nSTATUS=here");
}

TEST_F(ServiceManagerTest, TheWatchdogIsFedTwiceInItsTime) {
  Listen(folder_.Path("notify"));
  setenv("NOTIFY_SOCKET", folder_.Path("notify").c_str(), 1);
  setenv("WATCHDOG_USEC", "20000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid()).c_str(), 1);
  EpollLoop loop;
  ServiceManager manager;
  EXPECT_EQ(manager.watchdog(), base::Milliseconds(20));
  manager.KeepAlive(loop);
  int heard = 0;
  EXPECT_TRUE(loop.RunUntil(
      [&] {
        for (std::string words; !(words = Heard()).empty(); ++heard) EXPECT_EQ(words, "WATCHDOG=1");
        return heard >= 3;
      },
      loop.Now() + kManagerPatience));
}

TEST_F(ServiceManagerTest, AWatchdogOfAnotherProcessIsNotOurs) {
  Listen(folder_.Path("notify"));
  setenv("NOTIFY_SOCKET", folder_.Path("notify").c_str(), 1);
  setenv("WATCHDOG_USEC", "20000", 1);
  setenv("WATCHDOG_PID", absl::StrCat(getpid() + 1).c_str(), 1);
  EXPECT_EQ(ServiceManager().watchdog(), base::Duration());
}

TEST_F(ServiceManagerTest, NothingHappensWithoutAListenerOrARequest) {
  ServiceManager().Ready("nobody asked");
  for (const std::string& address : {std::string("no/path"), std::string(200, 'x'), folder_.Path("nobody")}) {
    setenv("NOTIFY_SOCKET", address.c_str(), 1);
    ServiceManager().Ready("nobody listens");
  }
}

}  // namespace
}  // namespace tokamak::os

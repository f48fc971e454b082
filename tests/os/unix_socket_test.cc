#include "lib/os/sockets/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/byte_budget.h"
#include "lib/base/bytes.h"
#include "tests/support/short_folder.h"

namespace tokamak::os {
namespace {

using base::Milliseconds;
using base::Seconds;
using Bytes = std::vector<uint8_t>;

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

class UnixSocketTest : public testing::Test {
 protected:
  UnixSocketTest() : directory_(folder_.path()), path_(folder_.Path("socket")) {}
  ~UnixSocketTest() override {
    connections_.clear();
    listener_.reset();
    EXPECT_TRUE(folder_.Files().empty()) << "something was left behind";
  }

  // Accepts into connections_; each frame goes to got_, each end to ended_.
  void Listen() {
    auto listener = UnixListener::Listen(loop_, path_, [this](FileDescriptor socket) { Accept(std::move(socket)); });
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
  }

  void Accept(FileDescriptor socket) {
    connections_.push_back(std::make_unique<UnixConnection>(
        loop_, std::move(socket),
        [this](Frame frame) {
          got_.push_back(std::move(frame));
          if (on_frame_) on_frame_();
        },
        [this](const absl::Status& why) {
          ended_.push_back(why);
          if (on_end_) on_end_();
        },
        budget_ ? &*budget_ : nullptr));
  }

  UnixSocket Connect() {
    absl::StatusOr<UnixSocket> socket = UnixSocket::Connect(path_);
    EXPECT_TRUE(socket.ok()) << socket.status();
    const size_t before = connections_.size();
    EXPECT_TRUE(RunUntil([&] { return connections_.size() > before; }));
    return *std::move(socket);
  }

  bool RunUntil(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + Seconds(60)); }

  // A socket as another program makes it: without a lock, and staying behind when closed; or one
  // that is connected, and says what it likes.
  FileDescriptor Stranger(bool listens = true) {
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    if (!listens) {
      EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
      return socket;
    }
    EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(socket.get(), 1), 0);
    return socket;
  }

  EpollLoop loop_;
  std::optional<base::ByteBudget> budget_;  // of connections from now on
  const testing_support::ShortFolder folder_;
  const std::string directory_, path_;
  std::unique_ptr<UnixListener> listener_;
  std::vector<std::unique_ptr<UnixConnection>> connections_;
  std::vector<Frame> got_;
  std::vector<absl::Status> ended_;
  std::function<void()> on_frame_, on_end_;
};

TEST_F(UnixSocketTest, FramesGoBothWays) {
  Listen();
  UnixSocket client = Connect();
  ASSERT_TRUE(client.Send({{'a', 's', 'k'}}, Seconds(10)).ok());
  ASSERT_TRUE(RunUntil([this] { return got_.size() == 1; }));
  EXPECT_EQ(got_[0].body, (Bytes{'a', 's', 'k'}));
  bool sent = false;
  connections_[0]->Send({{'o', 'k'}});
  ASSERT_TRUE(RunUntil([&] { return std::exchange(sent, true); }));
  const absl::StatusOr<Frame> answer = client.Receive(Seconds(10));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, (Bytes{'o', 'k'}));
}

TEST_F(UnixSocketTest, DescriptorsGoBothWays) {
  Listen();
  UnixSocket client = Connect();
  ASSERT_TRUE(client.Send({}, {STDIN_FILENO}, Seconds(10)).ok());
  ASSERT_TRUE(RunUntil([this] { return got_.size() == 1; }));
  EXPECT_EQ(got_[0].descriptors.size(), 1u);
  connections_[0]->Send({}, {STDIN_FILENO, STDOUT_FILENO});
  ASSERT_TRUE(RunUntil([this] { return connections_[0]->queued_bytes() == 0; }));
  EXPECT_EQ(client.Receive(Seconds(10))->descriptors.size(), 2u);
}

TEST_F(UnixSocketTest, EachSideKnowsTheIdentityOfTheOther) {
  Listen();
  const UnixSocket client = Connect();
  EXPECT_EQ(connections_[0]->peer_pid(), getpid());
  EXPECT_EQ(connections_[0]->peer().uid, getuid());
  EXPECT_EQ(client.peer().pid, getpid());
  EXPECT_EQ(client.peer().gid, getgid());
}

TEST_F(UnixSocketTest, OnlyThisUserMayConnect) {
  const mode_t before = umask(0);
  Listen();
  umask(before);
  struct stat file;
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(UnixSocketTest, DroppingTheListenerRemovesPathAndLock) {
  Listen();
  EXPECT_TRUE(Exists(path_));
  EXPECT_TRUE(Exists(path_ + ".lock"));
  listener_.reset();
  EXPECT_FALSE(Exists(path_));
  EXPECT_FALSE(Exists(path_ + ".lock"));
  Listen();
}

TEST_F(UnixSocketTest, APathInUseIsLeftAlone) {
  Listen();
  const auto second = UnixListener::Listen(loop_, path_, [](FileDescriptor) {});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_NE(second.status().message().find(path_), absl::string_view::npos);
  Connect();
}

TEST_F(UnixSocketTest, APathThatAProgramWithoutALockUsesIsLeftAlone) {
  {
    const FileDescriptor stranger = Stranger();
    for (int i = 0; i < 3; ++i) {  // also once its queue of connections is full
      const auto listener = UnixListener::Listen(loop_, path_, [](FileDescriptor) {});
      EXPECT_TRUE(absl::IsAlreadyExists(listener.status())) << listener.status();
    }
  }
  EXPECT_FALSE(Exists(path_ + ".lock"));
  EXPECT_EQ(unlink(path_.c_str()), 0);
}

TEST_F(UnixSocketTest, ASocketOfADeadProcessIsReplaced) {
  Stranger().Close();
  std::ofstream(path_ + ".lock").close();
  ASSERT_TRUE(Exists(path_));
  Listen();
  Connect();
}

TEST_F(UnixSocketTest, AFileThatIsNoSocketIsLeftAlone) {
  std::ofstream(path_) << "precious";
  const auto listener = UnixListener::Listen(loop_, path_, [](FileDescriptor) {});
  EXPECT_TRUE(absl::IsInvalidArgument(listener.status())) << listener.status();
  EXPECT_EQ(unlink(path_.c_str()), 0);
}

TEST_F(UnixSocketTest, AForeignFileInItsPlaceIsNotRemoved) {
  Listen();
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(unlink((path_ + ".lock").c_str()), 0);
  const FileDescriptor stranger = Stranger();
  listener_.reset();
  EXPECT_TRUE(Exists(path_));
  EXPECT_EQ(unlink(path_.c_str()), 0);
}

TEST_F(UnixSocketTest, TheSocketsFileIsOpenToTheUserOrToTheGroupAsWell) {
  for (const auto& [access, mode] : {std::pair(SocketAccess::kUser, 0600), std::pair(SocketAccess::kGroup, 0660)}) {
    const auto listener = UnixListener::Listen(
        loop_, path_, [](FileDescriptor) {}, access);
    ASSERT_TRUE(listener.ok()) << listener.status();
    struct stat file;
    ASSERT_EQ(stat(path_.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, static_cast<mode_t>(mode));
  }
}

TEST_F(UnixSocketTest, InvalidPathsAreRefused) {
  for (const std::string& path : {std::string(), std::string(200, 'x')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(UnixListener::Listen(loop_, path, [](FileDescriptor) {}).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(UnixSocket::Connect(path).status()));
  }
  const absl::Status nowhere = UnixListener::Listen(loop_, "/nowhere/socket", [](FileDescriptor) {}).status();
  EXPECT_TRUE(absl::IsNotFound(nowhere));
  EXPECT_NE(nowhere.message().find("No such file or directory: there is no folder /nowhere; "), std::string::npos)
      << nowhere;
}

TEST_F(UnixSocketTest, ConnectingWithoutAListenerSaysWhy) {
  const absl::Status none = UnixSocket::Connect(path_).status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_NE(none.message().find("start one with tokd --socket "), std::string::npos) << none;
  Stranger().Close();
  EXPECT_TRUE(absl::IsUnavailable(UnixSocket::Connect(path_).status()));
  EXPECT_EQ(unlink(path_.c_str()), 0);
}

TEST_F(UnixSocketTest, ConnectingDoesNotWaitForEverForAnAccept) {
  const FileDescriptor stranger = Stranger();
  std::vector<UnixSocket> waiting;
  absl::Status status;
  while (status.ok() && waiting.size() < 10) {
    absl::StatusOr<UnixSocket> socket = UnixSocket::Connect(path_, Milliseconds(1));
    status = socket.status();
    if (socket.ok()) waiting.push_back(*std::move(socket));
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(unlink(path_.c_str()), 0);
}

TEST_F(UnixSocketTest, TheClientsEndComesAfterItsFrames) {
  Listen();
  {
    UnixSocket client = Connect();
    for (int i = 0; i < 3 * kFramesPerTurn; ++i) ASSERT_TRUE(client.Send({{1}}, Seconds(10)).ok());
  }
  size_t frames_at_end = 0;
  on_end_ = [&] { frames_at_end = got_.size(); };
  ASSERT_TRUE(RunUntil([this] { return !ended_.empty(); }));
  EXPECT_EQ(frames_at_end, size_t{3 * kFramesPerTurn});
  EXPECT_EQ(ended_.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(ended_[0])) << ended_[0];
}

TEST_F(UnixSocketTest, RequestsOfAClientThatHasGoneAreHandled) {
  Listen();
  {
    UnixSocket client = Connect();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.Send({{1}}, Seconds(10)).ok());
  }
  on_frame_ = [this] { connections_[0]->Send({{2}}); };
  connections_[0]->Send({{0}});
  ASSERT_TRUE(RunUntil([this] { return !ended_.empty(); }));
  EXPECT_EQ(got_.size(), 3u);
}

TEST_F(UnixSocketTest, BrokenFramesEndTheConnection) {
  Listen();
  {
    FileDescriptor raw(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path_.c_str());
    ASSERT_EQ(connect(raw.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const uint8_t bad[] = {0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
    ASSERT_EQ(write(raw.get(), bad, sizeof(bad)), static_cast<ssize_t>(sizeof(bad)));
    ASSERT_TRUE(RunUntil([this] { return !ended_.empty(); }));
  }
  EXPECT_EQ(got_.size(), 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(ended_[0])) << ended_[0];
}

TEST_F(UnixSocketTest, AClientThatDoesNotReadIsEnded) {
  Listen();
  UnixSocket client = Connect();
  const Bytes body(100'000);
  for (int i = 0; i < 200; ++i) connections_[0]->Send(body);
  EXPECT_TRUE(ended_.empty()) << "not inside the call";
  ASSERT_TRUE(RunUntil([this] { return !ended_.empty(); }));
  EXPECT_TRUE(absl::IsResourceExhausted(ended_[0])) << ended_[0];
  EXPECT_EQ(ended_.size(), 1u);
}

TEST_F(UnixSocketTest, ConnectionsOfOneBudgetTogetherStayWithinIt) {
  budget_.emplace(1 << 20);
  Listen();
  std::vector<UnixSocket> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(Connect());
  const Bytes body(64 * 1024);
  // None of them reads.
  for (int sent = 0; sent < 100 && ended_.empty(); ++sent) {
    for (const auto& connection : connections_) connection->Send(body);
    loop_.RunUntil([] { return false; }, loop_.Now() + Milliseconds(1));
    EXPECT_LE(budget_->used(), budget_->limit());
  }
  ASSERT_FALSE(ended_.empty());
  EXPECT_TRUE(absl::IsResourceExhausted(ended_[0])) << ended_[0];
  connections_.clear();
  EXPECT_EQ(budget_->used(), 0u);
}

TEST_F(UnixSocketTest, IncompleteFramesCountInTheBudget) {
  budget_.emplace(1 << 20);
  Listen();
  // Each says that a frame of 700,000 bytes comes, and sends a tenth of it.
  std::vector<uint8_t> tenth(70'000);
  base::StoreLittle<uint32_t>(tenth.data(), 700'000);
  FileDescriptor first = Stranger(/*listens=*/false);
  ASSERT_EQ(write(first.get(), tenth.data(), tenth.size()), static_cast<ssize_t>(tenth.size()));
  ASSERT_TRUE(RunUntil([&] { return budget_->used() > 700'000; }));
  const FileDescriptor second = Stranger(/*listens=*/false);
  ASSERT_EQ(write(second.get(), tenth.data(), tenth.size()), static_cast<ssize_t>(tenth.size()));
  ASSERT_TRUE(RunUntil([this] { return !ended_.empty(); }));
  EXPECT_TRUE(absl::IsResourceExhausted(ended_[0])) << ended_[0];
  EXPECT_LE(budget_->used(), budget_->limit());
  // Once the first has gone there is room for others.
  first = FileDescriptor();
  ASSERT_TRUE(RunUntil([this] { return ended_.size() == 2; }));
  connections_.clear();
  EXPECT_EQ(budget_->used(), 0u);
  UnixSocket third = Connect();
  ASSERT_TRUE(third.Send(Bytes(1000), Seconds(10)).ok());
  EXPECT_TRUE(RunUntil([this] { return got_.size() == 1; }));
}

TEST_F(UnixSocketTest, ASlowReaderGetsEverything) {
  Listen();
  UnixSocket client = Connect();
  constexpr int kFrames = 70;
  for (int i = 0; i < kFrames; ++i) connections_[0]->Send(Bytes(100'000, static_cast<uint8_t>(i)));
  int got = 0;
  std::thread reader([&] {
    for (; got < kFrames; ++got) {
      const absl::StatusOr<Frame> frame = client.Receive(Seconds(60));
      ASSERT_TRUE(frame.ok()) << frame.status();
      ASSERT_EQ(frame->body, Bytes(100'000, static_cast<uint8_t>(got)));
    }
  });
  EXPECT_TRUE(RunUntil([this] { return connections_[0]->queued_bytes() == 0; }));
  reader.join();
  EXPECT_EQ(got, kFrames);
}

TEST_F(UnixSocketTest, AHandlerMayDropItsConnection) {
  Listen();
  UnixSocket client = Connect();
  on_frame_ = [this] { connections_.clear(); };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(client.Send({{1}}, Seconds(10)).ok());
  ASSERT_TRUE(RunUntil([this] { return connections_.empty(); }));
  EXPECT_EQ(got_.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(client.Receive(Seconds(10)).status()));
}

TEST_F(UnixSocketTest, TheEndHandlerMayDropItsConnection) {
  Listen();
  { const UnixSocket client = Connect(); }
  on_end_ = [this] { connections_.clear(); };
  ASSERT_TRUE(RunUntil([this] { return connections_.empty(); }));
}

TEST_F(UnixSocketTest, FramesSentBeforeTheConnectionIsDroppedArrive) {
  Listen();
  UnixSocket client = Connect();
  connections_[0]->Send({{'n', 'o'}});
  connections_.clear();
  EXPECT_EQ(client.Receive(Seconds(10))->body, (Bytes{'n', 'o'}));
  EXPECT_TRUE(absl::IsUnavailable(client.Receive(Seconds(10)).status()));
}

TEST_F(UnixSocketTest, TheAcceptHandlerMayDropTheListener) {
  auto listener = UnixListener::Listen(loop_, path_, [this](FileDescriptor socket) {
    listener_.reset();
    Accept(std::move(socket));
  });
  ASSERT_TRUE(listener.ok());
  listener_ = *std::move(listener);
  const auto first = UnixSocket::Connect(path_);
  const auto second = UnixSocket::Connect(path_);
  ASSERT_TRUE(RunUntil([this] { return !connections_.empty(); }));
  EXPECT_EQ(connections_.size(), 1u);
}

TEST_F(UnixSocketTest, AProcessWithoutDescriptorsAcceptsLater) {
  Listen();
  auto client = UnixSocket::Connect(path_);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor lowest(dup(STDIN_FILENO));
  const rlimit none = {static_cast<rlim_t>(lowest.get()), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const base::Timer relief = loop_.RunAfter(Milliseconds(5), [&] { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0); });
  EXPECT_TRUE(RunUntil([this] { return connections_.size() == 1; }));
}

TEST_F(UnixSocketTest, ReceivingGivesUpAtItsDeadlineAndCanBeRepeated) {
  Listen();
  UnixSocket client = Connect();
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Receive(Milliseconds(1)).status()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Receive(Milliseconds(-5)).status()));
  connections_[0]->Send({{1}});
  ASSERT_TRUE(RunUntil([this] { return connections_[0]->queued_bytes() == 0; }));
  EXPECT_TRUE(client.Receive(base::Duration()).ok()) << "what is there needs no time";
}

TEST_F(UnixSocketTest, SendingToAPeerThatDoesNotReadGivesUpAtItsDeadline) {
  Listen();
  UnixSocket client = Connect();
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = client.Send(Bytes(100'000), Milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST_F(UnixSocketTest, AFullSocketSendsNothingAndStaysGood) {
  Listen();
  UnixSocket client = Connect();
  const std::vector<Bytes> one(1, Bytes(1000));
  const auto send = [&] { return client.SendAllOrNone(one, base::Duration(), Seconds(60)); };
  size_t sent = 0;
  absl::StatusOr<bool> took = send();
  for (; took.ok() && *took; took = send()) ++sent;
  ASSERT_TRUE(took.ok()) << took.status();
  EXPECT_TRUE(RunUntil([&] { return got_.size() == sent; }));
  took = send();
  ASSERT_TRUE(took.ok() && *took) << took.status();
  EXPECT_TRUE(RunUntil([&] { return got_.size() == sent + 1; }));
  EXPECT_TRUE(ended_.empty());
}

TEST_F(UnixSocketTest, AFrameThatIsTooLongIsNotSent) {
  Listen();
  UnixSocket client = Connect();
  EXPECT_TRUE(absl::IsInvalidArgument(client.Send(Bytes(kMaxFrame + 1), Seconds(1))));
}

TEST_F(UnixSocketTest, ShutdownEndsAReceiveThatWaits) {
  Listen();
  UnixSocket client = Connect();
  absl::Status status;
  std::thread waiter([&] { status = client.Receive(Seconds(60)).status(); });
  client.Shutdown();
  waiter.join();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace tokamak::os

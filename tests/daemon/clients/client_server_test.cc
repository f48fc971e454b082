#include "lib/daemon/clients/client_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/client/protocol/frame.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/shared_memory.h"
#include "lib/os/sockets/unix_socket.h"
#include "tests/daemon/clients/lonely_node.h"
#include "tests/support/short_folder.h"

namespace tokamak::daemon {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr base::Duration kClientPatience = base::Seconds(60);
constexpr base::Duration kAtOnce = base::Milliseconds(1);
constexpr uint64_t kMemory = 4 << 20;

constexpr uint8_t kLateByte = 0xee;

// A program: creates an object of `size` bytes, loses its connection, writes to the object on a
// byte from `ask`, confirms to `answer`, and ends with the end of `ask`.
[[noreturn]] void WriteWithoutConnection(const std::string& path, uint64_t size, int ask, int answer) {
  auto socket = os::UnixSocket::Connect(path);
  if (!socket.ok() || !socket->Send(client::Encode(1, client::HelloRequest()), kClientPatience).ok()) _exit(1);
  auto welcome = socket->Receive(kClientPatience);
  if (!welcome.ok() || welcome->descriptors.size() != 2) _exit(2);
  auto arena = os::SharedMemory::Attach(welcome->descriptors[1].get(), kMemory, /*writable=*/true);
  client::CreateRequest create;
  create.id = base::ObjectId::FromName("half");
  create.data_size = size;
  if (!arena.ok() || !socket->Send(client::Encode(2, create), kClientPatience).ok()) _exit(3);
  auto created = socket->Receive(kClientPatience);
  if (!created.ok()) _exit(4);
  const auto place = client::DecodeBody<client::CreateReply>(created->body);
  if (!place.ok()) _exit(5);
  { const os::UnixSocket lost = *std::move(socket); }
  char word = 0;
  while (read(ask, &word, 1) == 1) {
    std::memset(arena->data() + place->location.offset, kLateByte, size);
    if (write(answer, &word, 1) != 1) _exit(6);
  }
  _exit(0);
}

// The server runs on the test's own loop, between the calls of the clients.
class ClientServerTest : public testing::Test {
 protected:
  ClientServerTest() : memory_(*os::SharedMemory::Create("test", kMemory)), node_(loop_, memory_.bytes()) { Start({}); }
  ~ClientServerTest() override {
    server_.reset();
    const absl::Status consistent = node_.store().CheckConsistency();
    EXPECT_TRUE(consistent.ok()) << consistent;
    EXPECT_EQ(node_.store().statistics().unsealed_objects, 0u);
    EXPECT_TRUE(folder_.Files().empty()) << "something is left";
  }

  void Start(const ClientServerOptions& options) {
    server_.reset();
    auto server = ClientServer::Listen(loop_, Path(), options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    server_->Serve(node_.context(), memory_.descriptor(), ReadOnly());
  }

  std::string Path() const { return folder_.Path("s"); }
  os::FileDescriptor ReadOnly() const {
    return os::FileDescriptor(open(absl::StrCat("/proc/self/fd/", memory_.descriptor()).c_str(), O_RDONLY | O_CLOEXEC));
  }

  bool RunUntil(const std::function<bool()>& done) { return loop_.RunUntil(done, loop_.Now() + kClientPatience); }

  os::UnixSocket Connect() {
    auto socket = os::UnixSocket::Connect(Path());
    EXPECT_TRUE(socket.ok()) << socket.status();
    return *std::move(socket);
  }

  // The next frame, while the server runs.
  absl::StatusOr<os::Frame> Receive(os::UnixSocket& socket) {
    absl::StatusOr<os::Frame> frame = absl::DeadlineExceededError("nothing came");
    RunUntil([&] {
      frame = socket.Receive(kAtOnce);
      return !absl::IsDeadlineExceeded(frame.status());
    });
    return frame;
  }

  template <typename Request>
  void Send(os::UnixSocket& socket, const Request& request, uint64_t id = 1) {
    const absl::Status status = socket.Send(client::Encode(id, request), kClientPatience);
    EXPECT_TRUE(status.ok()) << status;
  }

  void Greet(os::UnixSocket& socket) {
    Send(socket, client::HelloRequest());
    EXPECT_TRUE(Receive(socket).ok());
  }

  os::EpollLoop loop_;
  os::SharedMemory memory_;
  LonelyNode node_;
  const testing_support::ShortFolder folder_;
  std::unique_ptr<ClientServer> server_;
};

TEST_F(ClientServerTest, AReaderGetsOneDescriptorThatCannotWrite) {
  os::UnixSocket socket = Connect();
  client::HelloRequest hello;
  hello.access = Access::kRead;
  Send(socket, hello);
  const auto frame = Receive(socket);
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_EQ(frame->descriptors.size(), 1u);
  EXPECT_EQ(fcntl(frame->descriptors[0].get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_TRUE(os::SharedMemory::Attach(frame->descriptors[0].get(), kMemory, /*writable=*/false).ok());
  EXPECT_FALSE(os::SharedMemory::Attach(frame->descriptors[0].get(), kMemory, /*writable=*/true).ok());
}

TEST_F(ClientServerTest, ACreatorSeesWhatItWritesInTheStore) {
  os::UnixSocket socket = Connect();
  Send(socket, client::HelloRequest());
  const auto welcome = Receive(socket);
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  ASSERT_EQ(welcome->descriptors.size(), 2u);
  const auto mapping = os::SharedMemory::Attach(welcome->descriptors[1].get(), kMemory, /*writable=*/true);
  ASSERT_TRUE(mapping.ok()) << mapping.status();
  client::CreateRequest create;
  create.id = base::ObjectId::FromName("a");
  create.data_size = 5;
  Send(socket, create);
  const auto created = Receive(socket);
  ASSERT_TRUE(created.ok()) << created.status();
  const auto place = client::DecodeBody<client::CreateReply>(created->body);
  ASSERT_TRUE(place.ok());
  mapping->data()[place->location.offset] = 77;
  EXPECT_EQ(memory_.bytes()[place->location.offset], 77);
}

TEST_F(ClientServerTest, AClientThatBreaksTheProtocolLosesItsConnection) {
  os::UnixSocket socket = Connect();
  Greet(socket);
  ASSERT_TRUE(socket.Send(Bytes(100, 0xee), kClientPatience).ok());
  EXPECT_TRUE(absl::IsUnavailable(Receive(socket).status()));
  EXPECT_EQ(server_->clients(), 0u);
}

TEST_F(ClientServerTest, AClientOfAnotherVersionHearsWhy) {
  os::UnixSocket socket = Connect();
  Bytes hello = client::Encode(1, client::HelloRequest());
  ++hello[4];
  ASSERT_TRUE(socket.Send(hello, kClientPatience).ok());
  const auto answer = Receive(socket);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const auto header = client::DecodeHeader(answer->body);
  ASSERT_TRUE(header.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client::StatusOf(*header, answer->body)));
  EXPECT_TRUE(absl::IsUnavailable(Receive(socket).status()));
}

TEST_F(ClientServerTest, PinsGoBackWhenTheConnectionEnds) {
  const Bytes data = {1};
  const auto id = base::ObjectId::FromName("a");
  ASSERT_TRUE(node_.store().CreateAndSeal({id, data, {}}, node_.store().NewOwner()).ok());
  {
    os::UnixSocket socket = Connect();
    Greet(socket);
    client::GetRequest get;
    get.ids = {id};
    Send(socket, get);
    EXPECT_TRUE(Receive(socket).ok());
    EXPECT_EQ(node_.store().statistics().pins, 1u);
  }
  EXPECT_TRUE(RunUntil([&] { return node_.store().statistics().pins == 0; }));
  EXPECT_EQ(server_->clients(), 0u);
  EXPECT_EQ(server_->departed(), 0u);
}

// The program is this one: it lives on.
TEST_F(ClientServerTest, UnsealedObjectsGoWithTheConnectionButNotTheirMemory) {
  for (int i = 0; i < 3; ++i) {
    os::UnixSocket socket = Connect();
    Greet(socket);
    client::CreateRequest create;
    create.id = base::ObjectId::FromName("half");
    create.data_size = 1000;
    Send(socket, create);
    EXPECT_TRUE(Receive(socket).ok());
    EXPECT_EQ(node_.store().statistics().unsealed_objects, 1u);
  }
  EXPECT_TRUE(RunUntil([&] { return node_.store().statistics().unsealed_objects == 0; }));
  EXPECT_EQ(server_->clients(), 0u);
  EXPECT_EQ(server_->departed(), 1u) << "one program, whatever the number of its connections";
  EXPECT_EQ(node_.store().statistics().quarantined_bytes, 3u * 1024);
}

// Another process, which lives on without its connection, and writes.
TEST_F(ClientServerTest, AProgramThatLostItsConnectionCannotDamageLaterObjects) {
  constexpr uint64_t kSize = kMemory / 2;
  int ask[2], answer[2];
  ASSERT_EQ(pipe2(ask, O_CLOEXEC) + pipe2(answer, O_CLOEXEC), 0);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    close(ask[1]);
    WriteWithoutConnection(Path(), kSize, ask[0], answer[1]);
  }
  close(ask[0]);
  close(answer[1]);
  ASSERT_TRUE(RunUntil([&] { return node_.store().statistics().quarantined_bytes == kSize; }));
  EXPECT_EQ(server_->clients(), 0u);
  EXPECT_EQ(server_->departed(), 1u);

  // All that is left is filled, then it writes.
  const auto id = base::ObjectId::FromName("later");
  const store::Owner who = node_.store().NewOwner();
  const auto place = node_.store().Create(id, kSize, 0, who);
  ASSERT_TRUE(place.ok()) << place.status();
  const auto bytes = node_.store().Memory(*place);
  std::fill(bytes.begin(), bytes.end(), 1);
  ASSERT_TRUE(node_.store().Seal(id, who).ok());
  char word = 'w';
  ASSERT_EQ(write(ask[1], &word, 1), 1);
  ASSERT_EQ(read(answer[0], &word, 1), 1) << "the program could not write";
  EXPECT_EQ(memory_.bytes()[place->offset == 0 ? kSize : 0], kLateByte) << "it wrote somewhere else";
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 1; }));

  // With its end the memory is free.
  close(ask[1]);
  EXPECT_TRUE(RunUntil([&] { return node_.store().statistics().quarantined_bytes == 0; }));
  EXPECT_EQ(server_->departed(), 0u);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  close(answer[0]);
  EXPECT_TRUE(node_.store().Create(base::ObjectId::FromName("x"), kSize, 0, who).ok());
  ASSERT_TRUE(node_.store().Abort(base::ObjectId::FromName("x"), who).ok());
}

TEST_F(ClientServerTest, MemoryOfAProgramThatDiedIsFreeAtOnce) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    const os::FileDescriptor ended(open("/dev/null", O_RDONLY | O_CLOEXEC));
    WriteWithoutConnection(Path(), kMemory / 2, ended.get(), -1);
  }
  EXPECT_TRUE(RunUntil([&] {
    const store::Statistics statistics = node_.store().statistics();
    return statistics.aborted == 1 && statistics.used_bytes == 0;
  }));
  EXPECT_EQ(server_->departed(), 0u);
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
}

TEST_F(ClientServerTest, AClientThatTakesNoAnswersIsDropped) {
  os::UnixSocket slow = Connect();
  os::UnixSocket other = Connect();
  Greet(slow);
  Greet(other);
  Send(other, client::ListRequest());
  // Each list's answer is large, and none is taken.
  const Bytes data = {1};
  for (int i = 0; i < 1000; ++i) {
    const auto id = base::ObjectId::FromName(absl::StrCat(i));
    ASSERT_TRUE(node_.store().CreateAndSeal({id, data, {}}, node_.store().NewOwner()).ok());
  }
  bool ended = false;
  for (int i = 0; i < 10'000 && !ended; ++i) {
    ended = !slow.Send(client::Encode(1, client::ListRequest()), kAtOnce).ok();
    loop_.RunUntil([] { return false; }, loop_.Now() + base::Microseconds(100));
    ended = ended || server_->clients() == 1;
  }
  EXPECT_TRUE(RunUntil([&] { return server_->clients() == 1; }));
  EXPECT_TRUE(Receive(other).ok());
}

TEST_F(ClientServerTest, ASubscriberThatFellBehindHearsAgainAndHowMuchItMissed) {
  os::UnixSocket socket = Connect();
  Greet(socket);
  Send(socket, client::SubscribeRequest());
  EXPECT_TRUE(Receive(socket).ok());
  const Bytes data = {1};
  uint64_t sealed = 0;
  const auto seal = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const auto id = base::ObjectId::FromName(absl::StrCat(sealed++));
      ASSERT_TRUE(node_.store().CreateAndSeal({id, data, {}}, node_.store().NewOwner()).ok());
      ASSERT_TRUE(node_.store().Delete(id).ok());
    }
    loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(1));
  };
  for (int i = 0; i < 200; ++i) seal(500);
  EXPECT_EQ(server_->clients(), 1u);
  // It reads again.
  uint64_t heard = 0;
  uint64_t missed = 0;
  const auto take = [&](const os::Frame& frame) {
    const auto events = client::DecodeBody<client::EventsNotification>(frame.body);
    ASSERT_TRUE(events.ok());
    heard += events->events.size();
    missed += events->dropped;
  };
  for (;;) {
    loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(1));
    const auto frame = socket.Receive(base::Milliseconds(100));
    if (!frame.ok()) break;
    take(*frame);
  }
  EXPECT_LT(heard, 2 * sealed);
  seal(1);
  while (heard + missed < 2 * sealed) {
    const auto frame = Receive(socket);
    ASSERT_TRUE(frame.ok()) << frame.status() << " after " << heard << " and " << missed << " missed";
    take(*frame);
  }
  EXPECT_GT(missed, 0u);
  EXPECT_EQ(heard + missed, 2 * sealed);
}

TEST_F(ClientServerTest, TheNumberOfClientsIsBounded) {
  constexpr size_t kMost = 8;
  Start({os::SocketAccess::kUser, {kMost, kMost, kMost}});
  std::vector<os::UnixSocket> sockets;
  while (sockets.size() < kMost) sockets.push_back(Connect());
  ASSERT_TRUE(RunUntil([&] { return server_->clients() == kMost; }));
  for (int i = 0; i < 3; ++i) {
    os::UnixSocket one_more = Connect();
    Send(one_more, client::HelloRequest());
    const auto answer = Receive(one_more);
    ASSERT_TRUE(answer.ok()) << answer.status();
    const auto header = client::DecodeHeader(answer->body);
    ASSERT_TRUE(header.ok());
    const absl::Status why = client::StatusOf(*header, answer->body);
    EXPECT_TRUE(absl::IsResourceExhausted(why)) << why;
    EXPECT_NE(why.message().find("this program has 8 connections"), absl::string_view::npos) << why;
  }
  // Silent clients are kept only up to a bound.
  std::vector<os::UnixSocket> silent;
  for (size_t i = 0; i <= kMaxRefused; ++i) silent.push_back(Connect());
  EXPECT_TRUE(absl::IsUnavailable(Receive(silent.front()).status()));
  EXPECT_EQ(server_->clients(), kMost);
  sockets.pop_back();
  ASSERT_TRUE(RunUntil([&] { return server_->clients() == kMost - 1; }));
  os::UnixSocket next = Connect();
  Greet(next);
}

// Another process connects and says hello: 0 where it is welcome.
int AnotherProgramsHello(const std::string& path) {
  auto socket = os::UnixSocket::Connect(path);
  if (!socket.ok() || !socket->Send(client::Encode(1, client::HelloRequest()), kClientPatience).ok()) return 1;
  const auto welcome = socket->Receive(kClientPatience);
  return welcome.ok() && welcome->descriptors.size() == 2 ? 0 : 2;
}

TEST_F(ClientServerTest, WhatIsRefusedIsCountedWhetherItIsLoggedOrNot) {
  Start({os::SocketAccess::kUser, {/*clients=*/1, /*clients_of_user=*/1, /*clients_of_program=*/1}});
  base::SetLogLevel(base::Severity::kError);
  std::vector<os::UnixSocket> sockets;
  while (sockets.size() < 3) sockets.push_back(Connect());
  EXPECT_TRUE(RunUntil([&] { return server_->counters().refused == 2; }));
  base::SetLogLevel(base::Severity::kInfo);  // as it was
}

TEST_F(ClientServerTest, AProgramAtItsBoundLeavesPlacesToOthers) {
  Start({os::SocketAccess::kUser, {/*clients=*/8, /*clients_of_user=*/6, /*clients_of_program=*/4}});
  std::vector<os::UnixSocket> sockets;
  while (sockets.size() < 20) sockets.push_back(Connect());
  ASSERT_TRUE(RunUntil([&] { return server_->clients() + server_->counters().refused == sockets.size(); }));
  EXPECT_EQ(server_->clients(), 4u);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) _exit(AnotherProgramsHello(Path()));
  int status = -1;
  while (waitpid(pid, &status, WNOHANG) == 0) loop_.RunUntil([] { return false; }, loop_.Now() + kAtOnce);
  EXPECT_EQ(status, 0);
}

TEST_F(ClientServerTest, AClientWithoutAHelloLosesItsPlace) {
  Start({os::SocketAccess::kUser, {}, base::Milliseconds(20)});
  os::UnixSocket silent = Connect();
  os::UnixSocket greeted = Connect();
  Greet(greeted);
  EXPECT_TRUE(absl::IsUnavailable(Receive(silent).status()));
  EXPECT_EQ(server_->counters().silent, 1u);
  EXPECT_EQ(server_->counters().protocol_errors, 0u);
  Send(greeted, client::ListRequest());
  EXPECT_TRUE(Receive(greeted).ok()) << "it may be silent from now on";
}

TEST_F(ClientServerTest, TheConnectionsOfAProgramShareOneBound) {
  constexpr uint64_t kMost = 2 << 20;
  ClientServerOptions options;
  options.bounds.memory_of_program = kMost;
  Start(options);
  const Bytes data = {1};
  for (int i = 0; i < 1000; ++i) {
    const auto id = base::ObjectId::FromName(absl::StrCat(i));
    ASSERT_TRUE(node_.store().CreateAndSeal({id, data, {}}, node_.store().NewOwner()).ok());
  }
  // None takes its answers, and each alone has less than a connection may.
  std::vector<os::UnixSocket> sockets;
  for (int i = 0; i < 16; ++i) sockets.push_back(Connect());
  for (os::UnixSocket& socket : sockets) Greet(socket);
  for (int asked = 0; asked < 20; ++asked) {
    for (os::UnixSocket& socket : sockets) {
      const absl::Status sent = socket.Send(client::Encode(1, client::ListRequest()), kClientPatience);
      EXPECT_TRUE(sent.ok() || absl::IsUnavailable(sent)) << sent;
    }
    loop_.RunUntil([] { return false; }, loop_.Now() + base::Milliseconds(1));
    EXPECT_LE(server_->client_memory(), kMost);
  }
  EXPECT_GT(server_->counters().stalled, 0u);
  sockets.clear();
  ASSERT_TRUE(RunUntil([&] { return server_->clients() == 0; }));
  EXPECT_EQ(server_->client_memory(), 0u);
  os::UnixSocket next = Connect();
  Greet(next);
}

TEST_F(ClientServerTest, ANewNameMakesNoNewProgram) {
  const auto leave_unsealed = [this](const std::string& name) {
    os::UnixSocket socket = Connect();
    Greet(socket);
    client::CreateRequest create;
    create.id = base::ObjectId::FromName(name);
    create.data_size = 1000;
    Send(socket, create);
    EXPECT_TRUE(Receive(socket).ok());
  };
  char before[16];
  ASSERT_EQ(prctl(PR_GET_NAME, before), 0);
  leave_unsealed("a");
  ASSERT_TRUE(RunUntil([&] { return server_->departed() == 1; }));
  ASSERT_EQ(prctl(PR_SET_NAME, "other"), 0);
  leave_unsealed("b");
  ASSERT_TRUE(RunUntil([&] { return node_.store().statistics().quarantined_bytes == 2 * 1024; }));
  ASSERT_EQ(prctl(PR_SET_NAME, before), 0);
  const std::vector<store::OwnerUsage> usage = node_.store().usage();
  ASSERT_EQ(usage.size(), 1u);
  EXPECT_EQ(usage[0].quarantined_bytes, 2000u);
}

TEST_F(ClientServerTest, NoNewClientIsAcceptedOnceListeningStops) {
  os::UnixSocket socket = Connect();
  Greet(socket);
  server_->StopListening();
  EXPECT_FALSE(os::UnixSocket::Connect(Path()).ok());
  Send(socket, client::ListRequest());
  EXPECT_TRUE(Receive(socket).ok());
}

TEST_F(ClientServerTest, TheSocketServesThisUserOnlyAndOneDaemon) {
  struct stat info {};
  ASSERT_EQ(stat(Path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(absl::IsAlreadyExists(ClientServer::Listen(loop_, Path()).status()));
}

}  // namespace
}  // namespace tokamak::daemon

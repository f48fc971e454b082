#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/directory/redis/connection.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "tests/directory/redis_server.h"

namespace tokamak::directory::redis {
namespace {

constexpr base::Duration kPatience = base::Seconds(30);

class RedisConnectionTest : public testing::Test {
 protected:
  std::unique_ptr<Connection> Open(const ConnectionOptions& options) {
    auto connection = Connection::Open(loop_, options, [] {});
    EXPECT_TRUE(connection.ok()) << connection.status();
    (*connection)->Start();
    return *std::move(connection);
  }
  std::unique_ptr<Connection> Open(const std::string& address) {
    ConnectionOptions options;
    options.address = address;
    return Open(options);
  }

  absl::StatusOr<Reply> Ask(Connection& connection, const std::vector<std::string>& command,
                            base::Duration deadline = kPatience) {
    absl::StatusOr<Reply> result = absl::InternalError("no answer");
    bool answered = false;
    const base::Pending call = connection.Call(command, deadline, [&](absl::StatusOr<Reply> reply) {
      answered = true;
      result = std::move(reply);
    });
    EXPECT_FALSE(answered);
    loop_.RunUntil([&] { return answered; }, loop_.Now() + kPatience);
    return result;
  }
  // Asks until the server answers.
  void Await(Connection& connection) {
    const base::Time limit = loop_.Now() + kPatience;
    while (!Ask(connection, {"PING"}).ok() && loop_.Now() < limit) Pass(base::Milliseconds(1));
  }
  void Pass(base::Duration duration) {
    loop_.RunUntil([] { return false; }, loop_.Now() + duration);
  }

  os::EpollLoop loop_;
};

TEST_F(RedisConnectionTest, MalformedAddressesAreRefusedWithAnExample) {
  for (const char* address : {"", "localhost:6379", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
                              "unix:", "[::1]", "1.2.3:4"}) {
    ConnectionOptions options;
    options.address = address;
    const absl::Status status = Connection::Open(loop_, options, [] {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << address;
    EXPECT_NE(status.message().find("127.0.0.1:6379"), std::string::npos);
  }
}

TEST_F(RedisConnectionTest, ArgumentsAndRepliesAreBytes) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  const std::string bytes("\0\r\n\xff \"'$5", 10);
  EXPECT_EQ(Ask(*connection, {"ECHO", bytes})->text, bytes);
  EXPECT_EQ(Ask(*connection, {"ECHO", ""})->text, "");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(Ask(*connection, {"ECHO", large})->text, large);
}

TEST_F(RedisConnectionTest, EachKindOfReplyComesThrough) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  EXPECT_EQ(Ask(*connection, {"INCR", "n"})->integer, 1);
  EXPECT_EQ(Ask(*connection, {"GET", "nothing"})->kind, Reply::Kind::kNil);
  const auto array = Ask(*connection, {"EVAL", "return {1, 'two', {3}}", "0"});
  ASSERT_EQ(array->elements.size(), 3u);
  EXPECT_EQ(array->elements[0].integer, 1);
  EXPECT_EQ(array->elements[1].text, "two");
  EXPECT_EQ(array->elements[2].elements[0].integer, 3);
}

TEST_F(RedisConnectionTest, AnErrorOfTheServerIsAStatusThatSaysWhoSaidWhat) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  const absl::Status status = Ask(*connection, {"NOSUCHCOMMAND"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("unknown command"), std::string::npos) << status;
  EXPECT_NE(status.message().find(server.address()), std::string::npos) << status;
}

TEST_F(RedisConnectionTest, WithoutAServerACallFailsSoonAndSaysWhatToDo) {
  const auto connection = Open("unix:/no/such/socket");
  const absl::Status status = Ask(*connection, {"PING"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("unix:/no/such/socket: No such file or directory; start it"), std::string::npos)
      << status;
}

TEST_F(RedisConnectionTest, ARefusedTcpConnectionIsTriedAgain) {
  ConnectionOptions options;
  options.address = "127.0.0.1:1";
  options.first_retry = base::Milliseconds(1);
  const auto connection = Open(options);
  EXPECT_TRUE(loop_.RunUntil([&] { return connection->attempts() >= 4; }, loop_.Now() + kPatience));
  const absl::Status status = Ask(*connection, {"PING"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("Connection refused"), std::string::npos) << status;
}

TEST_F(RedisConnectionTest, WhenTheServerDiesWhatWaitsFailsAndANewServerIsFound) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  server.Freeze();
  int failed = 0;
  std::vector<base::Pending> calls;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(connection->Call({"PING"}, kPatience, [&](const absl::StatusOr<Reply>& reply) {
      failed += absl::IsUnavailable(reply.status());
    }));
  }
  Pass(base::Milliseconds(5));
  EXPECT_EQ(failed, 0);
  server.Kill();
  EXPECT_TRUE(loop_.RunUntil([&] { return failed == 10; }, loop_.Now() + kPatience));
  server.Start();
  Await(*connection);
  EXPECT_TRUE(Ask(*connection, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, ACallEndsAtItsDeadlineAndItsLateReplyIsIgnored) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  const uint64_t before = connection->attempts();
  server.Freeze();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Ask(*connection, {"ECHO", "late"}, base::Milliseconds(5)).status()));
  server.Thaw();
  EXPECT_EQ(Ask(*connection, {"ECHO", "next"})->text, "next");
  EXPECT_EQ(connection->attempts(), before);
}

TEST_F(RedisConnectionTest, AServerThatIsSilentForLongCountsAsLost) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  const uint64_t before = connection->attempts();
  server.Freeze();
  const absl::Status late = Ask(*connection, {"PING"}, Connection::kMaxSilence + base::Milliseconds(100)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_TRUE(loop_.RunUntil([&] { return connection->attempts() > before; }, loop_.Now() + kPatience));
  server.Thaw();
  Await(*connection);
}

TEST_F(RedisConnectionTest, CallsBeyondTheBoundAreRefused) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  server.Freeze();
  size_t answered = 0;
  std::vector<base::Pending> calls;
  for (size_t i = 0; i < Connection::kMaxPending; ++i) {
    calls.push_back(
        connection->Call({"PING"}, kPatience, [&](const absl::StatusOr<Reply>& reply) { answered += reply.ok(); }));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(*connection, {"PING"}).status()));
  server.Thaw();
  EXPECT_TRUE(loop_.RunUntil([&] { return answered == Connection::kMaxPending; }, loop_.Now() + kPatience));
  EXPECT_TRUE(Ask(*connection, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, APasswordIsGivenFirst) {
  RedisServer server({"--requirepass", "secret"});
  ConnectionOptions options;
  options.address = server.address();
  const auto without = Open(options);
  const base::Time limit = loop_.Now() + kPatience;
  absl::Status status = Ask(*without, {"PING"}).status();
  while (status.message().find("NOAUTH") == std::string::npos && loop_.Now() < limit) {
    Pass(base::Milliseconds(1));
    status = Ask(*without, {"PING"}).status();
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  options.password = "secret";
  const auto with = Open(options);
  EXPECT_TRUE(Ask(*with, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, WhatIsCalledAtTheStartOfAConnectionIsHeardFirst) {
  RedisServer server;
  ConnectionOptions options;
  options.address = server.address();
  std::unique_ptr<Connection> connection;
  base::Pending greeting;
  connection = *Connection::Open(loop_, options, [&] {
    greeting =
        connection->Call({"SET", "greeting", std::to_string(connection->attempts())}, kPatience, [](const auto&) {});
  });
  connection->Start();
  Await(*connection);
  EXPECT_EQ(Ask(*connection, {"GET", "greeting"})->text, std::to_string(connection->attempts()));
  server.Kill();
  server.Start();
  Await(*connection);
  EXPECT_EQ(Ask(*connection, {"GET", "greeting"})->text, std::to_string(connection->attempts()));
}

TEST_F(RedisConnectionTest, ACallWhoseHandleIsDroppedIsNotAnswered) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  int answered = 0;
  std::vector<base::Pending> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(connection->Call({"INCR", "n"}, kPatience, [&](const absl::StatusOr<Reply>&) { ++answered; }));
  }
  calls[1].reset();
  EXPECT_EQ(Ask(*connection, {"GET", "n"})->text, "3");  // the server had it already
  EXPECT_EQ(answered, 2);
}

TEST_F(RedisConnectionTest, AHandleMayBeDroppedInsideTheCallbackOfAnother) {
  RedisServer server;
  const auto connection = Open(server.address());
  Await(*connection);
  server.Freeze();
  base::Pending first, second;
  bool answered = false;
  first = connection->Call({"PING"}, kPatience, [&](const absl::StatusOr<Reply>&) {
    answered = true;
    first.reset();
    second.reset();
  });
  second = connection->Call({"PING"}, kPatience, [](const absl::StatusOr<Reply>&) { FAIL(); });
  server.Thaw();
  EXPECT_TRUE(loop_.RunUntil([&] { return answered; }, loop_.Now() + kPatience));
  EXPECT_TRUE(Ask(*connection, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, AHandleMayOutliveTheConnection) {
  RedisServer server;
  auto connection = Open(server.address());
  Await(*connection);
  const base::Pending waits =
      connection->Call({"PING"}, base::Milliseconds(1), [](const absl::StatusOr<Reply>&) { FAIL(); });
  connection.reset();
  Pass(base::Milliseconds(5));
}

TEST_F(RedisConnectionTest, ItMayBeDroppedInsideACallback) {
  RedisServer server;
  auto connection = Open(server.address());
  Await(*connection);
  bool dropped = false;
  int others = 0;
  std::vector<base::Pending> calls;
  calls.push_back(connection->Call({"PING"}, kPatience, [&](const absl::StatusOr<Reply>&) {
    dropped = true;
    connection.reset();
  }));
  for (int i = 0; i < 3; ++i) {
    calls.push_back(connection->Call({"PING"}, kPatience, [&](const absl::StatusOr<Reply>&) { ++others; }));
  }
  EXPECT_TRUE(loop_.RunUntil([&] { return dropped; }, loop_.Now() + kPatience));
  Pass(base::Milliseconds(5));
  EXPECT_EQ(others, 0);
}

TEST_F(RedisConnectionTest, ItMayBeDroppedWhileItConnects) {
  RedisServer server;
  auto connection = Open("127.0.0.1:1");
  connection.reset();
  connection = Open(server.address());
  const base::Pending waits = connection->Call({"PING"}, kPatience, [](const absl::StatusOr<Reply>&) { FAIL(); });
  connection.reset();
  Pass(base::Milliseconds(5));
}

TEST_F(RedisConnectionTest, ItWorksOverTcp) {
  // A port that is free now; the server binds it a moment later.
  const os::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const int on = 1;
  ASSERT_EQ(setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
  RedisServer server({"--port", port, "--bind", "127.0.0.1"});
  const auto connection = Open("127.0.0.1:" + port);
  Await(*connection);
  EXPECT_EQ(Ask(*connection, {"ECHO", "over TCP"})->text, "over TCP");
}

}  // namespace
}  // namespace tokamak::directory::redis

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "tests/directory/redis_line.h"
#include "tests/directory/redis_server.h"

namespace tokamak::directory::redis {
namespace {

constexpr base::Duration kConnectionPatience = base::Seconds(30);

class RedisConnectionTest : public testing::Test {
 protected:
  std::unique_ptr<Line> Open(const Target& target, const ConnectionOptions& options = {}) {
    return std::make_unique<Line>(loop_, target, options);
  }
  std::unique_ptr<Line> Open(const std::string& target) { return Open(*Target::Parse(target)); }

  absl::StatusOr<Reply> Ask(Line& line, const std::vector<std::string>& command,
                            base::Duration deadline = kConnectionPatience) {
    absl::StatusOr<Reply> result = absl::InternalError("no answer");
    bool answered = false;
    const base::Pending call = line.connection().Call(command, deadline, [&](absl::StatusOr<Reply> reply) {
      answered = true;
      result = std::move(reply);
    });
    EXPECT_FALSE(answered);
    loop_.RunUntil([&] { return answered; }, loop_.Now() + kConnectionPatience);
    return result;
  }
  // Asks until the server answers.
  void Await(Line& line) {
    const base::Time limit = loop_.Now() + kConnectionPatience;
    while (!Ask(line, {"PING"}).ok() && loop_.Now() < limit) Pass(base::Milliseconds(1));
  }
  void Pass(base::Duration duration) {
    loop_.RunUntil([] { return false; }, loop_.Now() + duration);
  }

  os::EpollLoop loop_;
};

TEST_F(RedisConnectionTest, ArgumentsAndRepliesAreBytes) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  const std::string bytes("\0\r\n\xff \"'$5", 10);
  EXPECT_EQ(Ask(*line, {"ECHO", bytes})->text, bytes);
  EXPECT_EQ(Ask(*line, {"ECHO", ""})->text, "");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(Ask(*line, {"ECHO", large})->text, large);
}

TEST_F(RedisConnectionTest, EachKindOfReplyComesThrough) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  EXPECT_EQ(Ask(*line, {"INCR", "n"})->integer, 1);
  EXPECT_EQ(Ask(*line, {"GET", "nothing"})->kind, Reply::Kind::kNil);
  const auto array = Ask(*line, {"EVAL", "return {1, 'two', {3}}", "0"});
  ASSERT_EQ(array->elements.size(), 3u);
  EXPECT_EQ(array->elements[0].integer, 1);
  EXPECT_EQ(array->elements[1].text, "two");
  EXPECT_EQ(array->elements[2].elements[0].integer, 3);
}

TEST_F(RedisConnectionTest, AnErrorOfTheServerIsAStatusThatQuotesIt) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  const absl::Status status = Ask(*line, {"NOSUCHCOMMAND"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("unknown command"), std::string::npos) << status;
  EXPECT_NE(status.message().find(server.address()), std::string::npos) << status;
}

TEST_F(RedisConnectionTest, ACallWithoutAServerFailsSoonWithARemedy) {
  const auto line = Open("redis@unix:/no/such/socket");
  const absl::Status status = Ask(*line, {"PING"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_NE(status.message().find("unix:/no/such/socket: No such file or directory; start it"), std::string::npos)
      << status;
}

TEST_F(RedisConnectionTest, ARefusedTcpConnectionIsTriedAgain) {
  ConnectionOptions options;
  options.first_retry = base::Milliseconds(1);
  const auto line = Open(*Target::Parse("redis@127.0.0.1:1"), options);
  EXPECT_TRUE(loop_.RunUntil([&] { return line->connection().attempts() >= 4; }, loop_.Now() + kConnectionPatience));
  const absl::Status status = Ask(*line, {"PING"}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("Connection refused"), std::string::npos) << status;
}

TEST_F(RedisConnectionTest, WaitingCallsFailWithTheirServerAndANewOneIsFound) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  server.Freeze();
  int failed = 0;
  std::vector<base::Pending> calls;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(line->connection().Call({"PING"}, kConnectionPatience, [&](const absl::StatusOr<Reply>& reply) {
      failed += absl::IsUnavailable(reply.status());
    }));
  }
  Pass(base::Milliseconds(5));
  EXPECT_EQ(failed, 0);
  server.Kill();
  EXPECT_TRUE(loop_.RunUntil([&] { return failed == 10; }, loop_.Now() + kConnectionPatience));
  server.Start();
  Await(*line);
  EXPECT_TRUE(Ask(*line, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, ACallEndsAtItsDeadlineAndItsLateReplyIsIgnored) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  const uint64_t before = line->connection().attempts();
  server.Freeze();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Ask(*line, {"ECHO", "late"}, base::Milliseconds(5)).status()));
  server.Thaw();
  EXPECT_EQ(Ask(*line, {"ECHO", "next"})->text, "next");
  EXPECT_EQ(line->connection().attempts(), before);
}

TEST_F(RedisConnectionTest, AServerThatIsSilentForLongCountsAsLost) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  const uint64_t before = line->connection().attempts();
  server.Freeze();
  const absl::Status late = Ask(*line, {"PING"}, ServerConnection::kMaxSilence + base::Milliseconds(100)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_TRUE(
      loop_.RunUntil([&] { return line->connection().attempts() > before; }, loop_.Now() + kConnectionPatience));
  server.Thaw();
  Await(*line);
}

TEST_F(RedisConnectionTest, CallsBeyondTheBoundAreRefused) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  server.Freeze();
  size_t answered = 0;
  std::vector<base::Pending> calls;
  for (size_t i = 0; i < ServerConnection::kMaxPending; ++i) {
    calls.push_back(line->connection().Call({"PING"}, kConnectionPatience,
                                            [&](const absl::StatusOr<Reply>& reply) { answered += reply.ok(); }));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(*line, {"PING"}).status()));
  // Calls that the node's own life needs have room beside these.
  bool own_answered = false;
  const base::Pending own = line->connection().CallForNode(
      {"PING"}, kConnectionPatience, [&](const absl::StatusOr<Reply>& reply) { own_answered = reply.ok(); });
  server.Thaw();
  EXPECT_TRUE(loop_.RunUntil([&] { return answered == ServerConnection::kMaxPending && own_answered; },
                             loop_.Now() + kConnectionPatience));
  EXPECT_TRUE(Ask(*line, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, APasswordIsGivenFirst) {
  RedisServer server({"--requirepass", "secret"});
  const auto without = Open(server.target());
  const base::Time limit = loop_.Now() + kConnectionPatience;
  absl::Status status = Ask(*without, {"PING"}).status();
  while (status.message().find("NOAUTH") == std::string::npos && loop_.Now() < limit) {
    Pass(base::Milliseconds(1));
    status = Ask(*without, {"PING"}).status();
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  ConnectionOptions options;
  options.credentials.password = Secret::FromText("secret");
  const auto with = Open(server.target(), options);
  EXPECT_TRUE(Ask(*with, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, CallsAtTheStartOfAConnectionGoFirst) {
  RedisServer server;
  ServerConnection* connection = nullptr;
  base::Pending greeting;
  const auto began = [&] {
    if (connection == nullptr) return;  // the first attempt: it is being made
    greeting = connection->Call({"SET", "greeting", std::to_string(connection->attempts())}, kConnectionPatience,
                                [](const auto&) {});
  };
  const auto line = std::make_unique<Line>(loop_, server.target(), ConnectionOptions(), nullptr, began);
  connection = &line->connection();
  Await(*line);
  server.Kill();
  server.Start();
  Await(*line);
  EXPECT_EQ(Ask(*line, {"GET", "greeting"})->text, std::to_string(line->connection().attempts()));
}

TEST_F(RedisConnectionTest, ACallWhoseHandleIsDroppedIsNotAnswered) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  int answered = 0;
  std::vector<base::Pending> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(
        line->connection().Call({"INCR", "n"}, kConnectionPatience, [&](const absl::StatusOr<Reply>&) { ++answered; }));
  }
  calls[1].reset();
  EXPECT_EQ(Ask(*line, {"GET", "n"})->text, "3");  // the server had it already
  EXPECT_EQ(answered, 2);
}

TEST_F(RedisConnectionTest, AHandleMayBeDroppedInsideTheCallbackOfAnother) {
  RedisServer server;
  const auto line = Open(server.target());
  Await(*line);
  server.Freeze();
  base::Pending first, second;
  bool answered = false;
  first = line->connection().Call({"PING"}, kConnectionPatience, [&](const absl::StatusOr<Reply>&) {
    answered = true;
    first.reset();
    second.reset();
  });
  second = line->connection().Call({"PING"}, kConnectionPatience, [](const absl::StatusOr<Reply>&) { FAIL(); });
  server.Thaw();
  EXPECT_TRUE(loop_.RunUntil([&] { return answered; }, loop_.Now() + kConnectionPatience));
  EXPECT_TRUE(Ask(*line, {"PING"}).ok());
}

TEST_F(RedisConnectionTest, AHandleMayOutliveTheConnection) {
  RedisServer server;
  auto line = Open(server.target());
  Await(*line);
  const base::Pending waits =
      line->connection().Call({"PING"}, base::Milliseconds(1), [](const absl::StatusOr<Reply>&) { FAIL(); });
  line.reset();
  Pass(base::Milliseconds(5));
}

TEST_F(RedisConnectionTest, ItMayBeDroppedInsideACallback) {
  RedisServer server;
  auto line = Open(server.target());
  Await(*line);
  bool dropped = false;
  int others = 0;
  std::vector<base::Pending> calls;
  calls.push_back(line->connection().Call({"PING"}, kConnectionPatience, [&](const absl::StatusOr<Reply>&) {
    dropped = true;
    line.reset();
  }));
  for (int i = 0; i < 3; ++i) {
    calls.push_back(
        line->connection().Call({"PING"}, kConnectionPatience, [&](const absl::StatusOr<Reply>&) { ++others; }));
  }
  EXPECT_TRUE(loop_.RunUntil([&] { return dropped; }, loop_.Now() + kConnectionPatience));
  Pass(base::Milliseconds(5));
  EXPECT_EQ(others, 0);
}

TEST_F(RedisConnectionTest, ItMayBeDroppedWhileItConnects) {
  RedisServer server;
  auto line = Open("redis@127.0.0.1:1");
  line.reset();
  line = Open(server.target());
  const base::Pending waits =
      line->connection().Call({"PING"}, kConnectionPatience, [](const absl::StatusOr<Reply>&) { FAIL(); });
  line.reset();
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
  const auto line = Open("redis@127.0.0.1:" + port);
  Await(*line);
  EXPECT_EQ(Ask(*line, {"ECHO", "over TCP"})->text, "over TCP");
}

}  // namespace
}  // namespace tokamak::directory::redis

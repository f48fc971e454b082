#include "tests/bench/baselines.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/os/child_process.h"
#include "lib/os/file_descriptor.h"

namespace tokamak::bench {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool ReadAll(int fd, uint8_t* to, uint64_t size) {
  while (size > 0) {
    const ssize_t got = recv(fd, to, size, 0);
    if (got <= 0) return false;
    to += got;
    size -= static_cast<uint64_t>(got);
  }
  return true;
}

bool WriteAll(int fd, const uint8_t* from, uint64_t size) {
  while (size > 0) {
    const ssize_t put = send(fd, from, size, MSG_NOSIGNAL);
    if (put <= 0) return false;
    from += put;
    size -= static_cast<uint64_t>(put);
  }
  return true;
}

// The other process: answers each size with as many bytes, until the connection ends.
[[noreturn]] void ServeTcp(int listener) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int fd = accept(listener, nullptr, nullptr);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  std::vector<uint8_t> bytes;
  uint64_t size = 0;
  while (ReadAll(fd, reinterpret_cast<uint8_t*>(&size), sizeof size)) {
    if (bytes.size() < size) bytes.resize(size, 0x5a);
    if (!WriteAll(fd, bytes.data(), size)) break;
  }
  _exit(0);
}

class TcpStream final : public Contender {
 public:
  TcpStream(os::FileDescriptor socket, pid_t server) : socket_(std::move(socket)), server_(server) {}
  ~TcpStream() override {
    socket_.Close();
    waitpid(server_, nullptr, 0);
  }
  std::string name() const override { return "tcp stream"; }
  absl::Status Prepare(uint64_t size) override {
    bytes_.assign(size, 1);
    return Fetch().status();  // so that the other side's memory was touched as well
  }
  absl::StatusOr<double> Fetch() override {
    const uint64_t size = bytes_.size();
    const Clock::time_point begin = Clock::now();
    if (!WriteAll(socket_.get(), reinterpret_cast<const uint8_t*>(&size), sizeof size) ||
        !ReadAll(socket_.get(), bytes_.data(), size)) {
      return absl::UnavailableError("the TCP connection broke");
    }
    return SecondsSince(begin);
  }

 private:
  os::FileDescriptor socket_;
  const pid_t server_;
  std::vector<uint8_t> bytes_;
};

class RedisGet final : public Contender {
 public:
  RedisGet(std::unique_ptr<os::ChildProcess> server, redisContext* context)
      : server_(std::move(server)), context_(context) {}
  ~RedisGet() override { redisFree(context_); }
  std::string name() const override { return "redis get"; }
  absl::Status Prepare(uint64_t size) override {
    const std::vector<char> value(size, 'z');
    auto* reply = static_cast<redisReply*>(redisCommand(context_, "SET object %b", value.data(), value.size()));
    const bool ok = reply != nullptr && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    size_ = size;
    return ok ? absl::OkStatus() : absl::UnavailableError("redis-server refused a SET");
  }
  absl::StatusOr<double> Fetch() override {
    const Clock::time_point begin = Clock::now();
    auto* reply = static_cast<redisReply*>(redisCommand(context_, "GET object"));
    const double seconds = SecondsSince(begin);
    const bool ok = reply != nullptr && reply->type == REDIS_REPLY_STRING && static_cast<uint64_t>(reply->len) == size_;
    freeReplyObject(reply);
    if (!ok) return absl::UnavailableError("redis-server refused a GET");
    return seconds;
  }

 private:
  const std::unique_ptr<os::ChildProcess> server_;
  redisContext* const context_;
  uint64_t size_ = 0;
};

class Memcpy final : public Contender {
 public:
  std::string name() const override { return "memcpy"; }
  absl::Status Prepare(uint64_t size) override {
    from_.assign(size, 1);
    to_.assign(size, 2);
    return absl::OkStatus();
  }
  absl::StatusOr<double> Fetch() override {
    const Clock::time_point begin = Clock::now();
    std::memcpy(to_.data(), from_.data(), from_.size());
    asm volatile("" : : "r"(to_.data()) : "memory");
    return SecondsSince(begin);
  }

 private:
  std::vector<uint8_t> from_;
  std::vector<uint8_t> to_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Contender>> StartTcpStream() {
  const os::FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return absl::UnavailableError("cannot listen on loopback");
  }
  const pid_t server = fork();
  if (server == 0) ServeTcp(listener.get());
  os::FileDescriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return absl::UnavailableError("cannot connect on loopback");
  }
  const int on = 1;
  setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return std::make_unique<TcpStream>(std::move(client), server);
}

absl::StatusOr<std::unique_ptr<Contender>> StartRedisGet(const std::string& folder) {
  constexpr int kPort = 16379;
  constexpr int kTries = 200;
  os::ChildOptions options;
  options.argv = {"redis-server", "--port", absl::StrCat(kPort), "--bind", "127.0.0.1",
                  "--save",       "",       "--appendonly",      "no",     "--dir",
                  folder};
  options.output = folder + "/redis.log";
  options.die_with_parent = true;
  auto server = os::ChildProcess::Start(options);
  if (!server.ok()) return server.status();
  for (int i = 0; i < kTries && (*server)->running(); ++i) {
    redisContext* context = redisConnect("127.0.0.1", kPort);
    if (context != nullptr && context->err == 0) return std::make_unique<RedisGet>(*std::move(server), context);
    redisFree(context);
    pollfd ended = {(*server)->descriptor(), POLLIN, 0};
    poll(&ended, 1, 20);
  }
  return absl::UnavailableError(absl::StrCat("redis-server does not answer on port ", kPort, ": see ", options.output));
}

std::unique_ptr<Contender> MakeMemcpy() { return std::make_unique<Memcpy>(); }

}  // namespace tokamak::bench

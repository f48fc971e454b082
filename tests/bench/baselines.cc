#include "tests/bench/baselines.h"

#include <hiredis/hiredis.h>
#include <poll.h>

#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/os/process/child_process.h"
#include "tests/bench/tcp_peer.h"
#include "tests/directory/redis_program.h"

namespace tokamak::bench {

namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

class TcpStream final : public Contender {
 public:
  explicit TcpStream(std::unique_ptr<TcpPeer> peer) : peer_(std::move(peer)) {}
  std::string name() const override { return "tcp stream"; }
  absl::Status Prepare(uint64_t size) override {
    bytes_.assign(size, 1);
    return Fetch().status();  // so that the other side's memory was touched as well
  }
  absl::StatusOr<double> Fetch() override {
    const Clock::time_point begin = Clock::now();
    if (absl::Status s = peer_->Fetch(absl::MakeSpan(bytes_)); !s.ok()) return s;
    return SecondsSince(begin);
  }

 private:
  const std::unique_ptr<TcpPeer> peer_;
  std::vector<uint8_t> bytes_;
};

class RedisGet final : public Contender {
 public:
  RedisGet(std::unique_ptr<os::ChildProcess> server, redisContext* context, RedisOver over, uint32_t pipeline)
      : server_(std::move(server)), context_(context), over_(over), pipeline_(pipeline) {}
  ~RedisGet() override { redisFree(context_); }
  std::string name() const override {
    const char* const of = over_ == RedisOver::kTcp ? "redis get" : "redis unix";
    return pipeline_ == 1 ? of : absl::StrCat(of, " x", pipeline_);
  }
  absl::Status Prepare(uint64_t size) override {
    const std::vector<char> value(size, 'z');
    auto* reply = static_cast<redisReply*>(redisCommand(context_, "SET object %b", value.data(), value.size()));
    const bool ok = reply != nullptr && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    size_ = size;
    return ok ? absl::OkStatus() : absl::UnavailableError("Redis refused a SET");
  }
  absl::StatusOr<double> Fetch() override {
    const Clock::time_point begin = Clock::now();
    for (uint32_t i = 0; i < pipeline_; ++i) redisAppendCommand(context_, "GET object");
    bool ok = true;
    for (uint32_t i = 0; i < pipeline_ && ok; ++i) {
      void* answer = nullptr;
      ok = redisGetReply(context_, &answer) == REDIS_OK;
      auto* reply = static_cast<redisReply*>(answer);
      ok = ok && reply->type == REDIS_REPLY_STRING && static_cast<uint64_t>(reply->len) == size_;
      freeReplyObject(reply);
    }
    const double seconds = SecondsSince(begin);
    if (!ok) return absl::UnavailableError("Redis refused a GET");
    return seconds / pipeline_;
  }

 private:
  const std::unique_ptr<os::ChildProcess> server_;
  redisContext* const context_;
  const RedisOver over_;
  const uint32_t pipeline_;
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
  auto peer = TcpPeer::Start();
  if (!peer.ok()) return peer.status();
  return std::make_unique<TcpStream>(*std::move(peer));
}

absl::StatusOr<std::unique_ptr<Contender>> StartRedisGet(const std::string& folder, RedisOver over, uint32_t pipeline) {
  constexpr int kFirstPort = 16379;
  constexpr int kTries = 200;
  const bool tcp = over == RedisOver::kTcp;
  const int port = tcp ? kFirstPort + static_cast<int>(pipeline) - 1 : 0;  // each its own server; 0: no TCP
  const std::string socket = absl::StrCat(folder, "/redis", pipeline, ".sock");
  os::ChildOptions options;
  options.argv = {directory::redis::RedisProgram(),
                  "--port",
                  absl::StrCat(port),
                  "--bind",
                  "127.0.0.1",
                  "--save",
                  "",
                  "--appendonly",
                  "no",
                  "--dir",
                  folder};
  if (!tcp) options.argv.insert(options.argv.end(), {"--unixsocket", socket});
  options.output = absl::StrCat(tcp ? absl::StrCat(folder, "/redis", port) : socket, ".log");
  options.die_with_parent = true;
  auto server = os::ChildProcess::Start(options);
  if (!server.ok()) return server.status();
  for (int i = 0; i < kTries && (*server)->running(); ++i) {
    redisContext* context = tcp ? redisConnect("127.0.0.1", port) : redisConnectUnix(socket.c_str());
    if (context != nullptr && context->err == 0) {
      return std::make_unique<RedisGet>(*std::move(server), context, over, pipeline);
    }
    redisFree(context);
    pollfd ended = {(*server)->descriptor(), POLLIN, 0};
    poll(&ended, 1, 20);
  }
  return absl::UnavailableError(absl::StrCat("Redis does not answer: see ", options.output));
}

std::unique_ptr<Contender> MakeMemcpy() { return std::make_unique<Memcpy>(); }

}  // namespace tokamak::bench

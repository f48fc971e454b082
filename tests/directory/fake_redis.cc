#include "tests/directory/fake_redis.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::directory::redis {

struct FakeRedis::Peer {
  os::FileDescriptor socket;
  std::unique_ptr<redisReader, void (*)(redisReader*)> reader{redisReaderCreate(), &redisReaderFree};
  os::FdWatch watch;
};

FakeRedis::FakeRedis(os::EpollLoop& loop, Answer answer)
    : loop_(loop), answer_(std::move(answer)), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CHECK_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  CHECK_EQ(listen(socket_.get(), 64), 0);
  CHECK_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  watch_ = loop_.Watch(socket_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
}

FakeRedis::~FakeRedis() = default;

void FakeRedis::Accept() {
  Peer peer;
  peer.socket = os::FileDescriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!peer.socket.valid()) return;
  if (!turn_away_.empty()) {
    (void)send(peer.socket.get(), turn_away_.data(), turn_away_.size(), MSG_NOSIGNAL);
    return;
  }
  peers_.push_back(std::move(peer));
  Peer& kept = peers_.back();
  kept.watch = loop_.Watch(kept.socket.get(), EPOLLIN, [this, &kept](uint32_t) { Read(kept); });
}

void FakeRedis::Read(Peer& peer) {
  std::array<char, 65536> bytes;
  const ssize_t got = recv(peer.socket.get(), bytes.data(), bytes.size(), 0);
  bool good = got > 0 && redisReaderFeed(peer.reader.get(), bytes.data(), static_cast<size_t>(got)) == REDIS_OK;
  std::string answers;
  while (good) {
    void* raw = nullptr;
    good = redisReaderGetReply(peer.reader.get(), &raw) == REDIS_OK;
    if (raw == nullptr) break;
    const std::unique_ptr<redisReply, void (*)(void*)> reply(static_cast<redisReply*>(raw), &freeReplyObject);
    Command command;
    for (size_t i = 0; i < reply->elements; ++i) command.emplace_back(reply->element[i]->str, reply->element[i]->len);
    answers += answer_(command);
    commands_.push_back(std::move(command));
  }
  if (!answers.empty()) (void)send(peer.socket.get(), answers.data(), answers.size(), MSG_NOSIGNAL);
  if (good) return;
  peer.watch.Reset();
  peers_.remove_if([&peer](const Peer& other) { return &other == &peer; });
}

}  // namespace tokamak::directory::redis

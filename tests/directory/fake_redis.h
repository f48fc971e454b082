// FakeRedis is a server on a port of the loopback that answers what a test tells it to, on the test's
// own loop: for what no real server can be made to say.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "lib/directory/redis/server/reply.h"
#include "lib/directory/redis/server/target.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"

struct redisReader;

namespace tokamak::directory::redis {

class FakeRedis final {
 public:
  // What is sent for a command, as bytes; "": nothing.
  using Answer = std::function<std::string(const Command& command)>;

  FakeRedis(os::EpollLoop& loop, Answer answer);
  ~FakeRedis();

  // Whoever connects is told this, and the connection is closed.
  void TurnAway(std::string words) { turn_away_ = std::move(words); }
  // What it has been asked, since the last time.
  std::vector<Command> TakeCommands() { return std::exchange(commands_, {}); }

  Place place() const { return {{"127.0.0.1", port_}, ""}; }
  Target target() const { return *Target::Parse("redis://" + place().ToString()); }

  static std::string Error(const std::string& text) { return "-" + text + "\r\n"; }
  static std::string Bulk(const std::string& text) {
    return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
  }
  static std::string Array(const std::vector<std::string>& texts) {
    std::string bytes = "*" + std::to_string(texts.size()) + "\r\n";
    for (const std::string& text : texts) bytes += Bulk(text);
    return bytes;
  }
  // Of a master in `mode`, with further lines.
  static std::string Info(const std::string& mode = "standalone", const std::string& more = "") {
    return Bulk("redis_version:7.0.15\r\nredis_mode:" + mode + "\r\nrole:master\r\nrun_id:abc\r\n" + more);
  }

 private:
  struct Peer;

  void Accept();
  void Read(Peer& peer);

  os::EpollLoop& loop_;
  const Answer answer_;
  std::string turn_away_;
  os::FileDescriptor socket_;
  uint16_t port_ = 0;
  os::FdWatch watch_;
  std::list<Peer> peers_;
  std::vector<Command> commands_;
};

}  // namespace tokamak::directory::redis

// FakeRedis is a server on a port of the loopback with the answers of a test, on the test's own
// loop: for answers that no real server can be made to give.
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
  // The answer to a command, as bytes; "": none.
  using Answer = std::function<std::string(const Command& command)>;

  FakeRedis(os::EpollLoop& loop, Answer answer);
  ~FakeRedis();

  // Sends each new connection these `words` and closes it.
  void TurnAway(std::string words) { turn_away_ = std::move(words); }
  // Returns the commands received since the last call.
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
  // The INFO of a master in `mode`, with further lines.
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

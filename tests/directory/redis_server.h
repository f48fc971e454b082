// A Redis server of the test's own: in a directory of its own, without a port or persistence unless
// asked for.
#pragma once

#include <string>
#include <vector>

#include "lib/directory/redis/server/target.h"
#include "lib/os/process/child_process.h"
#include "tests/support/short_folder.h"

namespace tokamak::directory::redis {

class RedisServer final {
 public:
  // `arguments` are added to the server's command line.
  explicit RedisServer(std::vector<std::string> arguments = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // Starting waits for nothing: clients try until it is there.
  void Start();
  void Kill();
  // It keeps its connections and does nothing.
  void Freeze();
  void Thaw();

  std::string address() const { return "unix:" + folder_.Path("socket"); }
  Target target() const;

 private:
  const std::vector<std::string> arguments_;
  const testing_support::ShortFolder folder_;
  std::unique_ptr<os::ChildProcess> process_;
};

}  // namespace tokamak::directory::redis

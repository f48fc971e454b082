#include "tests/directory/redis_server.h"

#include <signal.h>

#include <utility>

#include "lib/base/check.h"
#include "tests/directory/redis_program.h"

namespace tokamak::directory::redis {

RedisServer::RedisServer(std::vector<std::string> arguments) : arguments_(std::move(arguments)) { Start(); }

RedisServer::~RedisServer() = default;

void RedisServer::Start() {
  os::ChildOptions options;
  options.argv = {
      RedisProgram(), "--port", "0", "--unixsocket", folder_.Path("socket"), "--dir", folder_.path(), "--save", "",
      "--appendonly", "no"};
  options.argv.insert(options.argv.end(), arguments_.begin(), arguments_.end());
  options.output = folder_.Path("log");
  options.die_with_parent = true;
  auto process = os::ChildProcess::Start(options);
  CHECK(process.ok()) << process.status();
  process_ = *std::move(process);
}

Target RedisServer::target() const { return *Target::Parse("redis@" + address()); }

void RedisServer::Kill() { process_.reset(); }
void RedisServer::Freeze() { CHECK(process_->Signal(SIGSTOP).ok()); }
void RedisServer::Thaw() { CHECK(process_->Signal(SIGCONT).ok()); }

}  // namespace tokamak::directory::redis

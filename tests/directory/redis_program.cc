#include "tests/directory/redis_program.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "lib/base/check.h"
#include "lib/os/process/child_process.h"

namespace tokamak::directory::redis {
namespace {

bool IsInstalled(const std::string& program) {
  os::ChildOptions options;
  options.argv = {program, "--version"};
  options.output = "/dev/null";
  const auto started = os::ChildProcess::Start(options);
  CHECK(started.ok() || absl::IsNotFound(started.status())) << started.status();
  return started.ok();
}

}  // namespace

std::string RedisProgram() {
  constexpr char kRedis[] = "redis-server";
  constexpr char kValkey[] = "valkey-server";
  const char* const asked = std::getenv("TOKAMAK_REDIS");
  if (asked == nullptr || *asked == '\0') return IsInstalled(kRedis) ? kRedis : kValkey;
  const std::string name = asked;
  CHECK(name == "redis" || name == "valkey") << "TOKAMAK_REDIS is '" << name << "': set it to redis or to valkey";
  return name == "redis" ? kRedis : kValkey;
}

}  // namespace tokamak::directory::redis

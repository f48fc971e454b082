#include "lib/daemon/directory_host.h"

#include <utility>

#include "lib/daemon/flags/resolved_directory.h"
#include "lib/directory/redis/redis_directory.h"
#include "lib/node/directories/asked_directory.h"
#include "lib/node/directories/served_directory.h"

namespace tokamak::daemon {

namespace {

class RedisHost final : public node::DirectoryHost {
 public:
  explicit RedisHost(std::unique_ptr<directory::Directory> directory) : directory_(std::move(directory)) {}
  directory::Directory& directory() override { return *directory_; }
  void Serve(node::Node&) override {}

 private:
  const std::unique_ptr<directory::Directory> directory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<node::DirectoryHost>> OpenDirectory(os::EpollLoop& loop, node::Engine& engine,
                                                                   const DirectoryChoice& choice, base::Duration lease,
                                                                   base::Random random) {
  switch (choice.kind) {
    case DirectoryChoice::Kind::kServe: {
      directory::LocalOptions local;
      local.recovery = lease;
      local.life = random.Next();
      return std::make_unique<node::ServedDirectory>(loop, local, engine.max_call_size());
    }
    case DirectoryChoice::Kind::kRemote:
      if (absl::StatusOr<verbs::Address> server = verbs::Address::Parse(choice.server.host); server.ok()) {
        server->port = choice.server.port;
        return std::make_unique<node::AskedDirectory>(loop, engine, *server, random);
      }
      return std::make_unique<ResolvedDirectory>(loop, engine, choice.server, random);
    case DirectoryChoice::Kind::kRedis:
      break;
  }
  directory::redis::Options redis = choice.redis;
  redis.recovery = lease;
  redis.random = random;
  auto directory = directory::redis::RedisDirectory::Open(loop, redis);
  if (!directory.ok()) return directory.status();
  return std::make_unique<RedisHost>(*std::move(directory));
}

}  // namespace tokamak::daemon

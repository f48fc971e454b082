#include "lib/daemon/directory_host.h"

#include <utility>

#include "lib/directory/local.h"
#include "lib/directory/redis/redis_directory.h"
#include "lib/directory/remote/remote.h"
#include "lib/directory/remote/server.h"

namespace tokamak::daemon {

namespace {

// This node's own directory, which it serves to the others.
class ServedDirectory final : public node::DirectoryHost {
 public:
  ServedDirectory(base::EventLoop& loop, const directory::LocalOptions& options, size_t max_reply)
      : local_(loop, options), server_(loop, local_, max_reply) {}
  directory::Directory& directory() override { return local_; }
  void Serve(node::Services& services) override {
    services.Register(node::Service::kDirectory,
                      [this](absl::Span<const uint8_t> request, node::Services::Reply reply) {
                        return server_.Handle(request, std::move(reply));
                      });
  }

 private:
  directory::LocalDirectory local_;
  directory::DirectoryServer server_;
};

// The directory of another node.
class AskedDirectory final : public node::DirectoryHost {
 public:
  AskedDirectory(base::EventLoop& loop, node::EngineLink& link, const verbs::Address& server, base::Random random)
      : caller_(link, node::Service::kDirectory), remote_(loop, caller_, server, random) {}
  directory::Directory& directory() override { return remote_; }
  void Serve(node::Services&) override {}

 private:
  node::ServiceCaller caller_;
  directory::RemoteDirectory remote_;
};

class RedisHost final : public node::DirectoryHost {
 public:
  explicit RedisHost(std::unique_ptr<directory::Directory> directory) : directory_(std::move(directory)) {}
  directory::Directory& directory() override { return *directory_; }
  void Serve(node::Services&) override {}

 private:
  const std::unique_ptr<directory::Directory> directory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<node::DirectoryHost>> OpenDirectory(os::EpollLoop& loop, node::EngineLink& link,
                                                                   const DirectoryChoice& choice, base::Duration lease,
                                                                   base::Random random) {
  switch (choice.kind) {
    case DirectoryChoice::Kind::kServe: {
      directory::LocalOptions local;
      local.recovery = lease;
      return std::make_unique<ServedDirectory>(loop, local, link.max_call_size());
    }
    case DirectoryChoice::Kind::kRemote:
      return std::make_unique<AskedDirectory>(loop, link, choice.server, random);
    case DirectoryChoice::Kind::kRedis:
      break;
  }
  directory::redis::Options redis;
  redis.connection.address = choice.redis;
  redis.recovery = lease;
  auto directory = directory::redis::RedisDirectory::Open(loop, redis);
  if (!directory.ok()) return directory.status();
  return std::make_unique<RedisHost>(*std::move(directory));
}

}  // namespace tokamak::daemon

// Line is a ServerConnection with all that it needs: for tests that speak to a server themselves.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "lib/base/random.h"
#include "lib/directory/redis/server/dialer.h"
#include "lib/directory/redis/server/named_server.h"
#include "lib/directory/redis/server/server_connection.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::directory::redis {

class Line final {
 public:
  // To a server, which may be of any kind; it is started.
  Line(
      os::EpollLoop& loop, const Target& target, ConnectionOptions options = {}, std::unique_ptr<Tls> tls = nullptr,
      std::function<void()> began = [] {}, NamedServer::Role role = NamedServer::Role::kSentinel)
      : dialer_(loop, std::move(tls)),
        finder_(loop, target.places.front(), role),
        connection_(loop, dialer_, finder_, base::Random(1), options, std::move(began)) {
    connection_.Start();
  }

  ServerConnection& connection() { return connection_; }

 private:
  Dialer dialer_;
  NamedServer finder_;
  ServerConnection connection_;
};

}  // namespace tokamak::directory::redis

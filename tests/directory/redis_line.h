// Line is a Connection with all that it needs: for tests that speak to a server themselves.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "lib/base/random.h"
#include "lib/directory/redis/connection.h"
#include "lib/directory/redis/dialer.h"
#include "lib/directory/redis/named_server.h"
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

  Connection& connection() { return connection_; }

 private:
  Dialer dialer_;
  NamedServer finder_;
  Connection connection_;
};

}  // namespace tokamak::directory::redis

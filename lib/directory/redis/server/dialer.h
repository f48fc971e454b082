// Dialer makes connections to servers: looks names up, tries one address after another, and shakes
// hands where TLS is wanted.
//
// A host's name is looked up anew each time, so whoever dials again after a loss finds a server that
// has moved.
// Law: see lib/base/handle.h.
// Thread rule: its loop.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/handle.h"
#include "lib/base/time.h"
#include "lib/directory/redis/server/stream.h"
#include "lib/directory/redis/server/target.h"
#include "lib/directory/redis/server/tls.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/sockets/name_lookup.h"

namespace tokamak::directory::redis {

class Dialer final {
 public:
  using Callback = std::function<void(absl::StatusOr<std::unique_ptr<Stream>>)>;

  // `loop` must outlive it. `tls` may be null: then bytes go as they are.
  Dialer(os::EpollLoop& loop, std::unique_ptr<Tls> tls) : loop_(loop), names_(loop), tls_(std::move(tls)) {}

  // `deadline` is for each address, and for finding them. kUnavailable says what went wrong at each,
  // and what may be done.
  [[nodiscard]] base::Pending Dial(const Place& place, base::Duration deadline, Callback done);

 private:
  class Attempt;

  os::EpollLoop& loop_;
  os::NameLookup names_;
  const std::unique_ptr<Tls> tls_;
};

}  // namespace tokamak::directory::redis

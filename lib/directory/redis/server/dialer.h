// Dialer connects to servers: it looks names up, tries one address after another, and does the TLS
// handshake if requested.
//
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

  // `loop` must outlive it. `tls` null: in the clear.
  Dialer(os::EpollLoop& loop, std::unique_ptr<Tls> tls) : loop_(loop), names_(loop), tls_(std::move(tls)) {}

  // `deadline`: for each address, and for the look-up, which each call repeats. kUnavailable: the
  // text names each failure, and the remedy.
  [[nodiscard]] base::Pending Dial(const Place& place, base::Duration deadline, Callback done);

 private:
  class Attempt;

  os::EpollLoop& loop_;
  os::NameLookup names_;
  const std::unique_ptr<Tls> tls_;
};

}  // namespace tokamak::directory::redis

// Finder knows where the server is that a connection is to lead to, and whether the one that was
// reached is it.
//
// Implementations: named_server.h (where it is said to be), sentinel_master.h (where Sentinels say),
// cluster_slot.h (where a Redis Cluster has the directory's keys).
// Thread rule: one loop.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/handle.h"
#include "lib/base/time.h"
#include "lib/directory/redis/server/reply.h"
#include "lib/directory/redis/server/target.h"

namespace tokamak::directory::redis {

class Finder {
 public:
  using FoundCallback = std::function<void(absl::StatusOr<Place>)>;
  using StatusCallback = std::function<void(absl::Status)>;

  virtual ~Finder() = default;

  // Where to connect now. An error says why that is not known; ask again a moment later.
  [[nodiscard]] virtual base::Pending Find(base::Duration deadline, FoundCallback found) = 0;

  // What a server that was reached is asked, once it has accepted the password; and whether its
  // replies, in the same order and errors among them, show that it is the one. kAborted: another is,
  // which Find names from now on. What else is not OK says why not, and what may be done.
  virtual std::vector<Command> Questions() const = 0;
  virtual absl::Status Judge(const Place& place, const std::vector<Reply>& replies) = 0;

  // A connection to `place` was lost, or there was none; `why` is the server's error where it gave
  // one.
  virtual void Failed(const Place& place, const std::string& why) = 0;

  // False: a connection to `place` is to be given up.
  virtual bool IsStillRight(const Place& place) const = 0;

  // Finds out whether `place` is the only server that may accept writes at this moment, after what
  // it has answered before. kUnavailable: that is not certain.
  [[nodiscard]] virtual base::Pending Confirm(const Place& place, base::Duration deadline, StatusCallback done) = 0;
  // False: Confirm always says OK, and may be left out.
  virtual bool needs_confirmation() const = 0;

  // For errors, before a place is known.
  virtual std::string name() const = 0;
};

}  // namespace tokamak::directory::redis

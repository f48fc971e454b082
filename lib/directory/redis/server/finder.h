// Finder chooses the server for a connection, and judges whether the one that was reached is right.
//
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

  // Returns the place to connect to now, or why it is unknown; ask again.
  [[nodiscard]] virtual base::Pending Find(base::Duration deadline, FoundCallback found) = 0;

  // Questions go to a server that has accepted the password; Judge gets the replies in order,
  // errors among them. OK: it is the right one. kAborted: another is, which Find returns from now
  // on. Other errors name the remedy.
  virtual std::vector<Command> Questions() const = 0;
  virtual absl::Status Judge(const Place& place, const std::vector<Reply>& replies) = 0;

  // `why`: the server's error, if any.
  virtual void Failed(const Place& place, const std::string& why) = 0;

  // Returns false if a connection to `place` must be given up.
  virtual bool IsStillRight(const Place& place) const = 0;

  // Finds out whether `place` is the only server that may accept writes at this moment, after its
  // earlier answers. kUnavailable: uncertain.
  [[nodiscard]] virtual base::Pending Confirm(const Place& place, base::Duration deadline, StatusCallback done) = 0;
  // False: Confirm always returns OK.
  virtual bool needs_confirmation() const = 0;

  // For errors, before a place is known.
  virtual std::string name() const = 0;
};

}  // namespace tokamak::directory::redis

// UnregisteredCopies are this node's sealed copies not yet known to the directory: each one's
// source vouches for it, until fenced itself.
//
// Law: no copy outlives its voucher's promise unless the directory has accepted it: deletions find
// it then. Bound: the copies of this node. Thread rule: the control loop.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/time.h"

namespace tokamak::node {

class UnregisteredCopies final {
 public:
  using OverCallback = std::function<void(const base::ObjectVersion&)>;

  // `over` runs for each overdue copy, no longer contained.
  UnregisteredCopies(base::EventLoop& loop, OverCallback over) : loop_(loop), over_(std::move(over)) {}

  void Add(const base::ObjectVersion& version, base::Time until);
  // Ends overdue copies; call it before showing any object: the timer is late if the process was
  // stopped.
  void EndOverdue() {
    if (next_.has_value() && *next_ <= loop_.Now()) Expire();
  }
  void Remove(const base::ObjectVersion& version) { copies_.erase(version); }

  bool empty() const { return copies_.empty(); }
  bool Contains(const base::ObjectVersion& version) const { return copies_.count(version) != 0; }
  // nullopt: not contained.
  std::optional<base::Time> Until(const base::ObjectVersion& version) const;

 private:
  void ExpireAt(base::Time time);
  void Expire();

  base::EventLoop& loop_;
  const OverCallback over_;
  std::map<base::ObjectVersion, base::Time> copies_;
  std::optional<base::Time> next_;  // when the timer runs
  base::Timer expiry_;
};

}  // namespace tokamak::node

// UnregisteredCopies are this node's sealed copies that the directory does not know yet: the node
// that each came from vouches for it, and can do so until it is fenced itself.
//
//Law: no copy outlives the promise of the node that vouches for it, unless the directory has
//     accepted it: then a deletion finds it, whoever is gone by then.
// Bound: the copies of this node. Thread rule: the node's control loop.
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

  // `over` runs for each copy whose time is over; it is no longer contained.
  UnregisteredCopies(base::EventLoop& loop, OverCallback over) : loop_(loop), over_(std::move(over)) {}

  void Add(const base::ObjectVersion& version, base::Time until);
  // Ends copies whose time is over; call it before showing any object. A timer does the same, but
  // may be late: this process may have been stopped meanwhile.
  void EndOverdue() {
    if (next_.has_value() && *next_ <= loop_.Now()) Expire();
  }
  // Removes a copy that the directory has accepted, or that is no longer here.
  void Remove(const base::ObjectVersion& version) { copies_.erase(version); }

  bool empty() const { return copies_.empty(); }
  bool Contains(const base::ObjectVersion& version) const { return copies_.count(version) != 0; }
  // Until when it is vouched for; nullopt: not contained.
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

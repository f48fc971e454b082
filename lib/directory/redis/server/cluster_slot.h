// ClusterSlot finds the server of a Redis Cluster that has the hash slot of the directory's keys,
// and the next one after a failover or after the slot was moved.
//
// All keys of one directory are in one slot (docs/decisions/0015-one-slot-of-a-redis-cluster.md).
// The given servers, and those that they list (CLUSTER SLOTS), are asked in turn; any but the owner
// replies MOVED.
//
// Bounds: kMaxServers.
// Thread rule: one loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/directory/redis/server/finder.h"

namespace tokamak::directory::redis {

class ClusterSlot final : public Finder {
 public:
  static constexpr size_t kMaxServers = 64;

  // `loop` must outlive it. `key`: of the slot.
  ClusterSlot(base::EventLoop& loop, const Target& target, std::string key)
      : named_(target.places), key_(std::move(key)), servers_(target.places), answers_(loop) {}

  base::Pending Find(base::Duration deadline, FoundCallback found) override;
  std::vector<Command> Questions() const override;
  absl::Status Judge(const Place& place, const std::vector<Reply>& replies) override;
  void Failed(const Place& place, const std::string& why) override;
  bool IsStillRight(const Place&) const override { return true; }
  base::Pending Confirm(const Place& place, base::Duration deadline, StatusCallback done) override;
  bool needs_confirmation() const override { return false; }
  std::string name() const override;

 private:
  // By "MOVED 1234 10.0.0.1:7001". Returns false for other errors.
  bool Follow(const Place& from, absl::string_view error);
  void Learn(const Place& from, const Reply& slots);

  const std::vector<Place> named_;
  const std::string key_;
  std::vector<Place> servers_;  // to be tried in turn
  size_t next_ = 0;             // to try
  std::optional<Place> owner_;  // by the last MOVED
  base::Answers answers_;
};

}  // namespace tokamak::directory::redis

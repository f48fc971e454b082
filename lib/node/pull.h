// Pulls brings objects of other nodes here: it asks the directory who holds one, makes room, has an engine move the bytes and
// tries the next holder until it worked or nobody waits any more.
//
//   locating -> moving -> sealed          back-off: all holders failed, or there is no room
//     ^  ^        |   \___ next holder    queued: the holders are busy with other pulls of ours
//     |  +--------+------> back-off       refreshing: a holder's address is not known, or no longer right
//     +------------------- queued
//
// Law: one transfer for each object at a time, however many gets share it.
// Law: an object that is only half here is never seen: it is created, pinned, and sealed or aborted when the engine has said
//      that nobody touches its memory any more.
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/directory/directory.h"
#include "lib/node/engine.h"
#include "lib/node/peers.h"
#include "lib/store/store.h"
#include "lib/transport/limits.h"

namespace tokamak::node {

// One attempt at one holder ends at last after this time, however slowly bytes still come.
constexpr base::Duration kAttemptDeadline = base::Seconds(280);
static_assert(kAttemptDeadline + transport::kDrainGrace * 4 < transport::kServeDeadline,
              "the holder keeps its pin longer");
static_assert(transport::kPatience < kAttemptDeadline, "a holder that is silent is left long before one that is slow");

struct PullOptions {
  base::Duration first_retry =
      base::Milliseconds(10);  // after all holders failed, or when there is no room; then doubled
  base::Duration max_retry = base::Milliseconds(500);
  base::Duration max_queued = base::Seconds(5);  // then the directory is asked again: there may be more holders
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration locate_wait = base::Seconds(5);  // one question to the directory waits so long for a holder to appear
  // A holder from which nothing comes for so long is given up; one that serves many at once is slow, not dead, and one that is
  // dead is mostly noticed by its connection, before.
  base::Duration patience = transport::kPatience;
  base::Duration attempt_deadline = kAttemptDeadline;
};

struct PullCounters {
  uint64_t pulled = 0;
  uint64_t pulled_bytes = 0;
  uint64_t pulled_by[4] = {};  // by transport::Protocol
  uint64_t failed_attempts = 0;
  uint64_t next_holder = 0;    // a further holder was tried after a failure
  uint64_t stale_holders = 0;  // a holder in the directory did not have the object
  uint64_t waited_for_room = 0;
  uint64_t queued = 0;  // all holders were busy with other pulls of ours
};

class Pulls final {
 public:
  // ok: the object is sealed here. Otherwise why it can never come: too large for this store, say.
  using Callback = std::function<void(const absl::Status&)>;
  // Has this node's entry for an object looked at again.
  using Recheck = std::function<void(const base::ObjectId&)>;

  // All references must outlive it, and the engines' hosts must have been dropped before it is. `engines` is not empty.
  Pulls(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Peers& peers,
        std::vector<EngineLink*> engines, directory::NodeId self, Recheck recheck, base::Random random,
        const PullOptions& options);
  ~Pulls();
  Pulls(const Pulls&) = delete;
  Pulls& operator=(const Pulls&) = delete;

  // One who waits for an object. Dropping it stops waiting; when the last one stops, the pull is cancelled.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    // What went wrong last while it goes on trying; ok when nothing did.
    virtual absl::Status trouble() const = 0;
  };

  // Pulls `id`, or joins the pull that runs. Goes on until it worked, cannot work or the waiters are gone: the deadline is
  // the caller's. `protocol` counts for a pull that is not moving yet; kAuto leaves it to the policy.
  [[nodiscard]] std::unique_ptr<Waiter> Start(const base::ObjectId& id, transport::Protocol protocol, Callback done);

  size_t running() const { return pulls_.size(); }
  const PullCounters& counters() const { return counters_; }

 private:
  class Pull;
  class WaiterHandle;

  EngineLink& NextEngine() { return *engines_[next_engine_++ % engines_.size()]; }
  void Enqueue(const directory::NodeId& holder, Pull& pull);
  void Dequeue(const directory::NodeId& holder, const Pull& pull);
  void SlotFreed(const directory::NodeId& holder);
  void GiveTurns();

  base::EventLoop& loop_;
  store::Store& store_;
  directory::Directory& directory_;
  Peers& peers_;
  const std::vector<EngineLink*> engines_;
  const directory::NodeId self_;
  const Recheck recheck_;
  base::Random random_;
  const PullOptions options_;
  size_t next_engine_ = 0;
  uint64_t last_number_ = 0;
  PullCounters counters_;
  // A pull that nobody waits for stays here until its engine has let go of the memory.
  std::map<base::ObjectId, std::shared_ptr<Pull>> pulls_;
  std::map<directory::NodeId, std::map<uint64_t, Pull*>> queues_;  // by holder, in the order that pulls began
  std::set<directory::NodeId> freed_;                              // holders with a slot to give
  base::Timer giving_turns_;
};

}  // namespace tokamak::node

// PullTable holds what is on its way here: one ObjectPull (object_pull.h) for each object, however
// many gets wait for it, and the queues of those that wait until a busy holder has a turn for them.
//
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/cluster/peers.h"
#include "lib/node/copies/copies.h"
#include "lib/node/copies/dropped_versions.h"
#include "lib/node/engines/engine_link.h"
#include "lib/node/pulls/bundles.h"
#include "lib/node/pulls/get_latency.h"
#include "lib/node/pulls/location_cache.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"
#include "lib/transport/limits.h"

namespace tokamak::node {

class ObjectPull;

// Objects of at most this size, in bytes, take the short way: from one control loop to the other.
// Handing a pull to threads of its own on both nodes cost up to 300 us on two processors, most of
// it in waking them (docs/performance.md): as much as 1 MiB takes to move.
constexpr uint64_t kShortWay = 1 << 20;

// One attempt at one holder ends at last after this time, however slowly bytes still come.
constexpr base::Duration kAttemptDeadline = base::Seconds(280);
static_assert(kAttemptDeadline + transport::kDrainGrace * 4 < transport::kServeDeadline,
              "the holder keeps its pin longer");
static_assert(transport::kPatience < kAttemptDeadline, "a holder that is silent is left long before one that is slow");

struct PullOptions {
  base::Duration first_retry = base::Milliseconds(10);  // after all holders failed, or for want of room; then doubled
  base::Duration max_retry = base::Milliseconds(500);
  base::Duration max_queued = base::Seconds(5);  // then the directory is asked again: there may be more holders
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration directory_patience = base::Milliseconds(50);  // then what is possible without its answer is done
  base::Duration locate_wait =
      base::Seconds(5);  // one question to the directory waits this long for a holder to appear
  // A holder from which nothing comes for this long is given up; one that serves many at once is
  // slow, not dead, and one that is dead is mostly noticed by its connection, before.
  base::Duration patience = transport::kPatience;
  base::Duration attempt_deadline = kAttemptDeadline;
  uint64_t short_way = kShortWay;
  // Told of each pull, before those who wait for it: who served it, and by what protocol. For who
  // looks on, as experiments do; it must not call the node.
  std::function<void(const base::ObjectId& id, const directory::NodeId& holder, transport::Protocol protocol)>
      on_pulled;
};

// How far a pull is, in bytes of data and metadata.
struct PullProgress {
  uint64_t moved = 0;
  uint64_t total = 0;  // 0: nothing of it is moving yet
};

struct PullCounters {
  uint64_t pulled = 0;
  uint64_t pulled_bytes = 0;
  uint64_t pulled_by[4] = {};  // by transport::Protocol
  uint64_t failed_attempts = 0;
  uint64_t next_holder = 0;    // a further holder was tried after a failure
  uint64_t stale_holders = 0;  // a holder in the directory did not have the object
  uint64_t waited_for_room = 0;
  uint64_t queued = 0;       // all holders were busy with other pulls of ours
  uint64_t from_cache = 0;   // began with a place that was known, without waiting for the directory
  uint64_t brought = 0;      // came with an answer: the directory's, or a holder's that was asked to bring it
  uint64_t vouched_for = 0;  // arrived before the directory had entered them: their holder vouched
  uint64_t resumed = 0;      // attempts that were cut when something had arrived, which need not be moved again
  uint64_t deleted = 0;      // ended since the object was deleted meanwhile
};

class PullTable final {
 public:
  // ok: the object is sealed here. Otherwise why it can never come: too large for this store, say.
  using Callback = std::function<void(const absl::Status&)>;

  // What pulls work with. All references must outlive them, and the engines' hosts must have been
  // dropped before the table is.
  struct Services {
    base::EventLoop& loop;
    store::Store& store;
    directory::Directory& directory;
    Peers& peers;
    Membership& membership;
    LocationCache& places;
    const DroppedVersions& dropped;
    Copies& copies;
    transport::Caller& objects;        // of the service kObjects
    std::vector<EngineLink*> engines;  // not empty; beside the first, for bulk
    directory::NodeId self;
    base::Trace& trace;
    uint32_t trace_node = 0;  // TraceEvent::node
  };

  PullTable(Services services, base::Random random, const PullOptions& options);
  ~PullTable();
  PullTable(const PullTable&) = delete;
  PullTable& operator=(const PullTable&) = delete;

  // One who waits for an object. Dropping it stops waiting; when the last one stops, the pull is
  // cancelled.
  class Waiter : public base::Handle {
   public:
    // What went wrong last while it goes on trying; ok when nothing did.
    virtual absl::Status trouble() const = 0;
    // Once it was told ok: what brought the object.
    virtual Via via() const = 0;
  };

  // Pulls `id`, or joins the pull that runs. Goes on until it worked, cannot work or the waiters
  // are gone: the deadline is the caller's. `protocol` counts for a pull that is not moving yet;
  // kAuto leaves it to the policy.
  [[nodiscard]] std::unique_ptr<Waiter> Start(const base::ObjectId& id, transport::Protocol protocol, Callback done);

  // The same for one who does not wait: the pull goes on only as long as it is under way. Where it
  // would pause, `done` is told why: kNotFound (nobody has this content, or it was deleted),
  // kResourceExhausted (no room), kAlreadyExists or kFailedPrecondition (the id is in use here, or
  // another content has it), kUnavailable (anything else: later it may work). What ok means is as
  // above: of which generation is for the caller to see. `done` must not drop other waiters of
  // `id`.
  [[nodiscard]] std::unique_ptr<Waiter> StartOnce(const base::ObjectVersion& version, Callback done);

  // See Copies.
  bool IsComing(const base::ObjectVersion& version) const;
  void OnWithdraw(const base::ObjectVersion& version);
  // A pull of `version` will not seal it. Those who wait for its id go on waiting, for another
  // content.
  void Drop(const base::ObjectVersion& version);

  // Nothing where the object is not on its way here.
  std::optional<PullProgress> Progress(const base::ObjectId& id) const;

  size_t running() const { return pulls_.size(); }
  // Of these the ones of which no holder is known: they wait in the directory, or are about to.
  size_t looked_for() const { return looked_for_; }
  const PullCounters& counters() const { return counters_; }
  uint64_t bundles_sent() const { return bundles_.sent(); }

 private:
  friend class ObjectPull;

  std::unique_ptr<Waiter> AddWaiter(const base::ObjectId& id, transport::Protocol protocol, base::Generation once,
                                    Callback done);
  ObjectPull* Find(const base::ObjectId& id) const;
  void Enqueue(const directory::NodeId& holder, ObjectPull& pull);
  void Dequeue(const directory::NodeId& holder, const ObjectPull& pull);
  void SlotFreed(const directory::NodeId& holder);
  void GiveTurns();

  const Services services_;
  base::Random random_;
  const PullOptions options_;
  uint64_t bulk_pulls_ = 0;  // begun
  uint64_t last_number_ = 0;
  size_t looked_for_ = 0;
  PullCounters counters_;
  Bundles bundles_;
  // A pull that nobody waits for stays here until its engine has let go of the memory.
  std::map<base::ObjectId, std::unique_ptr<ObjectPull>> pulls_;
  std::map<directory::NodeId, std::map<uint64_t, ObjectPull*>> queues_;  // by holder, in the order that pulls began
  std::set<directory::NodeId> freed_;                                    // holders with a slot to give
  base::Timer giving_turns_;
};

}  // namespace tokamak::node

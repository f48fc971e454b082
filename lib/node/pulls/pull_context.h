// PullContext is shared by all pulls of a node: the node's parts, options, counters, and the table
// of the pulls.
//
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/object_id.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/cluster/peers.h"
#include "lib/node/copies/copies.h"
#include "lib/node/copies/dropped_versions.h"
#include "lib/node/engines/engine_link.h"
#include "lib/node/pulls/bundles.h"
#include "lib/node/pulls/location_cache.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"
#include "lib/transport/limits.h"
#include "lib/transport/object_access.h"

namespace tokamak::node {

class ObjectPull;

// Largest object, in bytes, that takes the short way: from one control loop to the other. Handing a
// pull to other threads on both nodes cost up to 300 us on two processors, most of it in waking
// them (docs/performance.md): as much as moving 1 MiB.
constexpr uint64_t kShortWay = 1 << 20;

// The longest that one attempt at one holder may take, however slowly bytes still come.
constexpr base::Duration kAttemptDeadline = base::Seconds(280);
static_assert(kAttemptDeadline + transport::kDrainGrace * 4 < transport::kServeDeadline,
              "the holder keeps its pin longer");
static_assert(transport::kPatience < kAttemptDeadline, "a holder that is silent is left long before one that is slow");

struct PullOptions {
  base::Duration first_retry = base::Milliseconds(10);  // after all holders failed, or without room; then doubled
  base::Duration max_retry = base::Milliseconds(500);
  base::Duration max_queued = base::Seconds(5);  // then the directory is asked again for more holders
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration directory_patience = base::Milliseconds(50);  // then the pull goes on without the answer
  base::Duration locate_wait = base::Seconds(5);               // how long one question waits for a holder to appear
  // A holder that sends nothing for this long is given up. One that serves many at once is slow,
  // not dead; a dead one is mostly noticed earlier, by its connection.
  base::Duration patience = transport::kPatience;
  base::Duration attempt_deadline = kAttemptDeadline;
  uint64_t short_way = kShortWay;
  // Observes each pull, before its waiters: who served it, by which protocol. For experiments; it
  // must not call the node.
  std::function<void(const base::ObjectId& id, const directory::NodeId& holder, transport::Protocol protocol)>
      on_pulled;
};

// Progress of a pull, in bytes of data and metadata.
struct PullProgress {
  uint64_t moved = 0;
  uint64_t total = 0;  // 0: no byte is moving yet
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
  uint64_t from_cache = 0;   // began with a remembered place, without waiting for the directory
  uint64_t brought = 0;      // came with the answer of the directory, or of a holder asked to bring it
  uint64_t vouched_for = 0;  // arrived before the directory had entered them: their holder vouched
  uint64_t resumed = 0;      // attempts cut after bytes had arrived that need not be moved again
  uint64_t deleted = 0;      // ended because the object was deleted
};

// The parts of the node that pulls work with.
struct PullNeeds {
  base::EventLoop& loop;
  store::Store& store;
  directory::Directory& directory;
  Peers& peers;
  Membership& membership;
  LocationCache& places;
  const DroppedVersions& dropped;
  Copies& copies;
  transport::Caller& objects;        // of the service kObjects
  std::vector<EngineLink*> engines;  // not empty; those beside the first are for bulk
  directory::NodeId self;
  base::Trace& trace;
  uint32_t trace_node = 0;  // TraceEvent::node
};

struct PullContext {
  // The table, as its pulls see it.
  class Table {
   public:
    // Gives `pull` its turn when `holder` has a slot for it, unless it is dequeued before.
    virtual void Enqueue(const directory::NodeId& holder, ObjectPull& pull) = 0;
    virtual void Dequeue(const directory::NodeId& holder, const ObjectPull& pull) = 0;
    // Notes that a transfer from `holder` has ended: another pull may have its turn, in a task of
    // its own.
    virtual void SlotFreed(const directory::NodeId& holder) = 0;
    virtual size_t running() const = 0;
    // Removes the pull of `id`, which is over: the next waiter for the object begins another.
    virtual std::unique_ptr<ObjectPull> TakeOut(const base::ObjectId& id) = 0;

   protected:
    ~Table() = default;
  };

  const PullNeeds& needs;
  const PullOptions& options;
  Table& table;
  base::Random random;
  Bundles bundles;
  PullCounters counters = {};
  uint64_t bulk_pulls = 0;  // begun between engines for bulk
  size_t looked_for = 0;    // pulls without a known holder
};

}  // namespace tokamak::node

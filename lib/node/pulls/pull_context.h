// PullContext is what all pulls of a node share: the node's parts, options, counters, and the table
// of pulls.
//
// Thread rule: the control loop.
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
#include "lib/node/engines/engine.h"
#include "lib/node/pulls/bundles.h"
#include "lib/node/pulls/location_cache.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"
#include "lib/transport/limits.h"
#include "lib/transport/object_access.h"

namespace tokamak::node {

class ObjectPull;

// Largest object, in bytes, that takes the short way: from one control loop to the other. Other
// threads on both nodes cost up to 300 us (docs/performance.md): as much as moving 1 MiB.
constexpr uint64_t kShortWay = 1 << 20;

// Limit of one attempt at one holder, however slow.
constexpr base::Duration kAttemptDeadline = base::Seconds(280);
static_assert(kAttemptDeadline + transport::kDrainGrace * 4 < transport::kServeDeadline,
              "the holder keeps its pin longer");
static_assert(transport::kPatience < kAttemptDeadline, "a holder that is silent is left long before one that is slow");

struct PullOptions {
  base::Duration first_retry = base::Milliseconds(10);  // all holders failed, or no room; then doubled
  base::Duration max_retry = base::Milliseconds(500);
  base::Duration max_queued = base::Seconds(5);  // then the directory is asked for more holders
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration directory_patience = base::Milliseconds(50);  // then the pull goes on without the answer
  base::Duration locate_wait = base::Seconds(5);               // of one question, for a holder to appear
  // Silence after which a holder is given up. A busy one is slow, not dead; a dead one mostly
  // breaks its connection first.
  base::Duration patience = transport::kPatience;
  base::Duration attempt_deadline = kAttemptDeadline;
  uint64_t short_way = kShortWay;
  // Observes each pull, before its waiters; must not call the node. For experiments.
  std::function<void(const base::ObjectId& id, const directory::NodeId& holder, transport::Protocol protocol)>
      on_pulled;
};

// In bytes of data and metadata.
struct PullProgress {
  uint64_t moved = 0;
  uint64_t total = 0;  // 0: none moving yet
};

struct PullCounters {
  uint64_t pulled = 0;
  uint64_t pulled_bytes = 0;
  uint64_t pulled_by[transport::kProtocolValues] = {};  // by transport::Protocol
  uint64_t failed_attempts = 0;
  uint64_t next_holder = 0;    // holders tried after a failure
  uint64_t stale_holders = 0;  // named holders without the object
  uint64_t waited_for_room = 0;
  uint64_t queued = 0;       // all holders busy with pulls of ours
  uint64_t from_cache = 0;   // began with a remembered place
  uint64_t brought = 0;      // came with the directory's, or a holder's, answer
  uint64_t vouched_for = 0;  // arrived before the directory's entry
  uint64_t resumed = 0;      // cut attempts whose bytes are kept
  uint64_t deleted = 0;      // ended by a deletion
};

struct PullNeeds {
  base::EventLoop& loop;
  store::Store& store;
  directory::Directory& directory;
  Peers& peers;
  Membership& membership;
  LocationCache& places;
  const DroppedVersions& dropped;
  Copies& copies;
  transport::Caller& objects;    // of the service kObjects
  std::vector<Engine*> engines;  // not empty; those beside the first are for bulk
  directory::NodeId self;
  base::Trace& trace;
  uint32_t trace_node = 0;  // TraceEvent::node
};

struct PullContext {
  // The table, as its pulls see it.
  class Table {
   public:
    // Gives `pull` its turn when `holder` has a slot, unless dequeued before.
    virtual void Enqueue(const directory::NodeId& holder, ObjectPull& pull) = 0;
    virtual void Dequeue(const directory::NodeId& holder, const ObjectPull& pull) = 0;
    // Gives the slot of an ended transfer to another pull, in a task of its own.
    virtual void SlotFreed(const directory::NodeId& holder) = 0;
    virtual size_t running() const = 0;
    // Removes the pull of `id`, which is over.
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
  uint64_t bulk_pulls = 0;  // between bulk engines
  size_t looked_for = 0;    // pulls without a known holder
};

}  // namespace tokamak::node

// Context is what all parts of one endpoint share: its dependencies, counters and numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/trace.h"
#include "lib/transport/caller.h"
#include "lib/transport/channels/ack_times.h"
#include "lib/transport/channels/copy_budget.h"
#include "lib/transport/channels/lossy_paths.h"
#include "lib/transport/channels/peer_shares.h"
#include "lib/transport/channels/refusals.h"
#include "lib/transport/channels/shared_completions.h"
#include "lib/transport/endpoint_counters.h"
#include "lib/transport/endpoint_options.h"
#include "lib/transport/memory/rail.h"
#include "lib/transport/memory/slot_pool.h"
#include "lib/transport/memory/window_pool.h"
#include "lib/transport/object_access.h"
#include "lib/transport/policy/adaptive_policy.h"
#include "lib/transport/pull_request.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class Pull;

// Interval of probes to a silent peer of a connection with work.
constexpr base::Duration kProbeInterval = base::Seconds(1);

static_assert(kFlushGrace < kDrainGrace && kDrainGrace < kProbeInterval && kProbeInterval <= kProgressInterval &&
                  kProgressInterval < kConnectDeadline && kConnectDeadline <= kRejoinInterval &&
                  kRejoinInterval < kPatience && kPatience < kServeDeadline,
              "in this order docs/bounds.md has them");

struct Context {
  base::EventLoop& loop;
  std::vector<Rail> rails;  // 1 to kMaxRails
  Source& source;
  base::Random random;
  base::Trace& trace;
  EndpointOptions options;  // checked
  EndpointCounters counters;
  CallHandler call_handler;

  // By rail.
  std::vector<std::unique_ptr<SharedCompletions>> completions = {};
  std::vector<std::unique_ptr<SlotPool>> slots = {};  // of messages
  std::vector<std::unique_ptr<SlotPool>> notes = {};  // BulkQueue::kNotesSize bytes each

  std::vector<std::unique_ptr<WindowPool>> windows = {};

  absl::flat_hash_map<PullId, Pull*> pulls = {};  // alive; never visited in its own order
  PullId next_pull = 1;
  PinId next_pin = 0;
  uint32_t serves = 0;   // alive
  bool leaving = false;  // peers' transfers are refused
  PeerShares shares = {};
  LossyPaths lossy_paths = {};
  Refusals refusals = {};
  std::unique_ptr<AdaptivePolicy> adaptive = {};  // null: options.policy alone
  std::vector<AckTimes> ack_times = {};           // by rail
  std::vector<verbs::Address> services = {};      // where we listen, by rail

  // Returns whether a revoked key proves that its memory is out of the peers' reach; else only
  // dropped queue pairs do. Both sides are taken to be alike.
  bool RevokingProves() const {
    return std::all_of(rails.begin(), rails.end(),
                       [](const Rail& rail) { return rail.device.limits().drop_stops_transfers; });
  }

  verbs::ReliabilityOptions ReliabilityOf(uint32_t rail) {
    verbs::ReliabilityOptions reliability = options.reliability;
    if (options.measures_ack_timeout) {
      reliability.ack_timeout = ack_times[rail].ForNext(loop.Now(), reliability.ack_timeout);
    }
    return reliability;
  }

  void Record(base::TraceKind kind, uint32_t number, uint64_t size) {
    trace.Record({loop.Now(), kind, options.trace_node, number, size});
  }
  void RecordPhase(uint64_t activity, base::Phase phase) {
    if (activity == 0) return;
    trace.Record({loop.Now(), base::TraceKind::kPhase, options.trace_node, static_cast<uint32_t>(phase), 0, activity});
  }
};

}  // namespace tokamak::transport

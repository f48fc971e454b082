// NodeSnapshot is a copy of a node's numbers and state at one moment, for metrics and the cluster's
// page.
//
// Thread rule: taken on the control loop, read anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/daemon/metrics/client_counters.h"
#include "lib/daemon/metrics/named_number.h"
#include "lib/node/node.h"
#include "lib/node/pulls/get_latency.h"
#include "lib/store/types.h"
#include "lib/transport/endpoint.h"

namespace tokamak::daemon {

struct NodeSnapshot {
  std::string node;
  std::string device;
  std::string directory_kind;  // "serve", "tokd" or "redis"
  base::Duration uptime;
  bool draining = false;

  uint64_t store_page_bytes = 0;
  store::Statistics store;
  std::vector<store::OwnerUsage> programs;

  uint64_t pulls_running = 0;
  node::PullCounters pulls;
  node::GetLatency latency;
  uint64_t pins_of_peers = 0;
  uint64_t pins_of_peers_total = 0;
  uint64_t brought_to_peers_total = 0;
  uint64_t location_cache_objects = 0;

  bool joined = false;
  bool directory_away = false;
  bool fenced = false;
  uint64_t directory_updates_behind = 0;
  node::MembershipCounters membership;

  uint64_t clients = 0;
  uint64_t departed_programs = 0;
  ClientCounters client_counters;
  uint64_t client_memory = 0;

  uint64_t loop_waits = 0;
  std::vector<transport::EndpointCounters> engines;
  std::vector<std::vector<NamedNumber>> rails;  // each device's counters, by its names

  // Returns why peers and programs should not come now; empty: they may.
  std::string WhyNotReady() const;
};

NodeSnapshot SnapshotOf(const node::Node& node);

}  // namespace tokamak::daemon

// Scenario is an experiment before its run: a network, the options of its NICs, and their load.
// Plain data, checked by the reader of its file (scenario_file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/transport/endpoint_options.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "sim/costs/host_costs.h"
#include "sim/fabric/topology/topology.h"
#include "sim/scenario/transfer.h"

namespace tokamak::sim {

struct NicSettings {
  verbs::soft::CongestionControl congestion = verbs::soft::CongestionControl::kDcqcn;
  verbs::soft::DcqcnParameters dcqcn;
  uint32_t window = 1024;  // unacknowledged packets of a transfer
  uint32_t mtu = 1024;
  uint32_t ack_every = 0;
  bool selective_repeat = false;
  uint32_t dscp = 26;  // priority 3
  base::Duration ack_timeout = base::Milliseconds(1);
  uint32_t retries = 6;
};

// For the hosts' nodes, if something goes through the store.
struct StoreSettings {
  uint64_t memory = 64 << 20;           // bytes per node
  uint32_t engines = 1;                 // for bulk; 0: the control loop's moves all
  transport::EndpointOptions endpoint;  // policy, slots, chunks
  bool connect_before = true;           // getters to putters, before the time begins
};

struct StoreObject {
  uint32_t home = 0;  // number of the putting interface
  uint32_t bytes = 0;
  bool there_before = false;  // put before the scenario's time; else by a transfer
};

struct OutputSettings {
  base::Duration interval = base::Microseconds(1);  // between samples, at first
  uint32_t most_samples = 1000;                     // beyond, every other is dropped
};

struct Scenario {
  std::string name;
  std::string question;
  Topology topology;
  NicSettings nic;
  bool phantom = true;  // lengths without bytes
  uint64_t seed = 1;
  base::Duration duration = base::Seconds(1);           // then the run ends, finished or not
  base::Duration freeze_after = base::Milliseconds(1);  // with frames waiting and none moving
  OutputSettings outputs;
  std::vector<std::string> groups;
  std::vector<Transfer> transfers;  // in the workloads' order
  StoreSettings store;
  std::vector<StoreObject> objects;  // empty: no store
  std::vector<HostCosts> costs;      // of nodes, by host number
};

}  // namespace tokamak::sim

// Scenario is an experiment before its run: a network, the options of its NICs, and their load. All
// of it is plain data, and the reader of a file (scenario_file.h) has found all mistakes.
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
  uint32_t window = 1024;  // packets of one transfer that may be unacknowledged
  uint32_t mtu = 1024;
  uint32_t ack_every = 0;  // see DeviceOptions
  bool selective_repeat = false;
  uint32_t dscp = 26;  // priority 3
  base::Duration ack_timeout = base::Milliseconds(1);
  uint32_t retries = 6;
};

// Options of the nodes that hosts run if something goes through the store.
struct StoreSettings {
  uint64_t memory = 64 << 20;           // bytes of each node
  uint32_t engines = 1;                 // for bulk; 0: the control loop's moves everything
  transport::EndpointOptions endpoint;  // policy, slots, chunks
  bool connect_before = true;           // connects getters to putters before the time begins
};

// An object of the store.
struct StoreObject {
  uint32_t home = 0;  // the interface of the topology that puts it, by number
  uint32_t bytes = 0;
  bool there_before = false;  // true if it is put before the scenario's time begins; else a transfer does it
};

struct OutputSettings {
  base::Duration interval = base::Microseconds(1);  // between samples, at first
  uint32_t most_samples = 1000;                     // beyond it every other one is dropped
};

struct Scenario {
  std::string name;
  std::string question;  // its purpose, in a sentence
  Topology topology;
  NicSettings nic;
  bool phantom = true;  // payloads have lengths and no bytes
  uint64_t seed = 1;
  base::Duration duration = base::Seconds(1);           // the run ends then, finished or not
  base::Duration freeze_after = base::Milliseconds(1);  // frames wait, and nothing has moved for this long
  OutputSettings outputs;
  std::vector<std::string> groups;  // names of the workloads
  std::vector<Transfer> transfers;  // in the order of the workloads
  StoreSettings store;
  std::vector<StoreObject> objects;  // empty: nothing goes through the store
  std::vector<HostCosts> costs;      // of the nodes, by their host's number in the topology
};

}  // namespace tokamak::sim

// Scenario is an experiment before it is run: a network, how its NICs behave, and what they are to
// carry. All of it is plain data, so whoever reads a file (scenario_file.h) has found all mistakes.
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

// Of the nodes that hosts run where something goes through the store.
struct StoreSettings {
  uint64_t memory = 64 << 20;           // bytes of each node
  uint32_t engines = 1;                 // for bulk; 0: the control loop's moves everything
  transport::EndpointOptions endpoint;  // policy, slots, chunks
  bool connect_before = true;           // who gets is connected to who puts when the time begins
};

// An object of the store.
struct StoreObject {
  uint32_t home = 0;  // who puts it: an interface of the topology, by number
  uint32_t bytes = 0;
  bool there_before = false;  // it is put before the scenario's time begins; else a transfer does it
};

struct OutputSettings {
  base::Duration interval = base::Microseconds(1);  // between samples, to begin with
  uint32_t most_samples = 1000;                     // once there are more, every other one is dropped
};

struct Scenario {
  std::string name;
  std::string question;  // what it is to show, in a sentence
  Topology topology;
  NicSettings nic;
  bool phantom = true;  // payloads have lengths and no bytes
  uint64_t seed = 1;
  base::Duration duration = base::Seconds(1);           // it ends then, finished or not
  base::Duration freeze_after = base::Milliseconds(1);  // frames wait, and nothing has moved for this long
  OutputSettings outputs;
  std::vector<std::string> groups;  // names of the workloads
  std::vector<Transfer> transfers;  // in the order of the workloads
  StoreSettings store;
  std::vector<StoreObject> objects;  // none: nothing goes through the store
  std::vector<HostCosts> costs;      // of the nodes, by their host's number in the topology
};

}  // namespace tokamak::sim

// VirtualRun is the cluster benchmark in virtual time: a host with costs for each rank, on one
// switch, and the same driver as under MPI (driver.h).
//
// Sockets are simulated ones (simulated_streams.h), on a cable and a switch of their own that are
// like the RDMA device's: a case uses one or the other.
//
// Law: the same settings give the same results, to the last digit.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/transport/policy/policy.h"
#include "sim/cluster/cluster.h"
#include "sim/costs/host_costs.h"
#include "sim/fabric/link/rate.h"
#include "tests/bench/cluster/driver.h"
#include "tests/bench/cluster/plan.h"
#include "tests/bench/cluster/settings.h"
#include "tests/bench/cluster/virtual/stream_costs.h"
#include "tests/bench/cluster/virtual/virtual_collective.h"

namespace tokamak::bench {

struct VirtualRunOptions {
  sim::HostCosts costs;
  sim::Rate rate = sim::Rate::Gigabits(100);
  StreamCosts streams;
  transport::Policy policy = transport::Policy::BuiltIn(transport::DeviceKind::kHardware);
  // Uses the numbers of ranks, engines and chunks, memory, registration and the seed.
  Settings settings;
};

class VirtualRun final {
 public:
  // How long a run may take in its own time.
  static constexpr base::Duration kLongest = base::Seconds(24 * 3600);

  VirtualRun(const VirtualRunOptions& options, const Plan& plan);
  ~VirtualRun();
  VirtualRun(const VirtualRun&) = delete;
  VirtualRun& operator=(const VirtualRun&) = delete;

  // Once. `progress`, which may be null, hears of each case when it is over.
  absl::StatusOr<std::vector<CaseResult>> Run(const Driver::Progress& progress);

 private:
  class Rank;

  const VirtualRunOptions options_;
  const Plan plan_;
  const std::unique_ptr<sim::Cluster> cluster_;
  VirtualHub hub_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace tokamak::bench

// Run is a scenario while it happens: its network and its NICs on one event loop, their transfers,
// the hosts' nodes on loops of their own if something goes through the store, and how it ends.
//
// The owner of the time builds a Run, starts it, lets time pass until over(), and then until
// quiet() or some time has passed, so the last acknowledgements arrive; results.h writes down the
// outcome.
//
// Law: the same scenario gives the same results, in any virtual time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/scenario/fabric_ports.h"
#include "sim/scenario/load/sampler.h"
#include "sim/scenario/load/store_hosts.h"
#include "sim/scenario/load/traffic.h"
#include "sim/scenario/scenario.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

class Run final {
 public:
  enum class Ending : uint8_t {
    kRunning,
    kFinished,  // all transfers completed
    kFailed,    // some ended otherwise
    kFrozen,    // frames wait, and nothing has moved for Scenario::freeze_after
    kDuration,  // the scenario's duration was over first
    kNotReady,  // the nodes did not join in time
  };

  // `time` must outlive it. Errors: those of SwitchedFabric::Build, OpenSoftDevice and
  // StoreHosts::Open.
  static absl::StatusOr<std::unique_ptr<Run>> Build(VirtualTime& time, Scenario scenario);

  // Starts the scenario's time: if something goes through the store, when all nodes have joined, at
  // the latest after kMostPreparation; else now.
  void Start();
  static constexpr base::Duration kMostPreparation = base::Seconds(10);

  // Once true it stays so.
  bool over();
  Ending ending() const { return ending_; }

  // Returns true if nothing is queued or on its way.
  bool quiet() const { return fabric_->frames_in_use() == 0; }

  // Returns roughly the part of the payload that has been sent.
  double PartDone() const;

  // Returns queues that hold frames and are paused: "switch1:0 -> switch2, 120 KiB". In a frozen
  // network these are the circle.
  std::vector<std::string> PausedQueues() const;

  const Scenario& scenario() const { return scenario_; }
  SwitchedFabric& fabric() const { return *fabric_; }
  const std::vector<FabricPort>& ports() const { return ports_; }
  const Traffic& traffic() const { return *traffic_; }
  const Sampler& sampler() const { return *sampler_; }
  bool PayloadIsRight() const;
  base::Time Now() const { return loop_->Now(); }
  base::Time begin() const { return begin_; }
  base::Time end() const { return end_; }
  uint64_t Transmissions() const;  // frames on all cables, pause frames included

 private:
  Run(VirtualTime& time, Scenario scenario) : loop_(time.MakeLoop()), scenario_(std::move(scenario)) {}
  void Begin();
  void ArmFreeze();
  uint64_t Moved() const;
  uint64_t Queued() const;
  void End(Ending ending);

  const std::unique_ptr<base::EventLoop> loop_;  // of network and NICs
  const Scenario scenario_;
  std::unique_ptr<SwitchedFabric> fabric_;
  std::vector<FabricPort> ports_;
  std::unique_ptr<Traffic> traffic_;
  std::unique_ptr<StoreHosts> stores_;  // null: nothing goes through the store
  std::unique_ptr<Sampler> sampler_;
  Ending ending_ = Ending::kRunning;
  base::Time begin_;
  base::Time end_;
  uint64_t total_bytes_ = 0;
  uint64_t moved_ = 0;
  base::Timer freeze_;
  base::Timer duration_;
};

const char* ToString(Run::Ending ending);

}  // namespace tokamak::sim

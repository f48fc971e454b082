// Run is a scenario while it happens: network, NICs and transfers on one event loop, the hosts'
// nodes, if any, on their own, and how it ends.
//
// Build, Start, let time pass until over(), then until quiet() or a limit, for the last ACKs;
// results.h writes.
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
    kFinished,
    kFailed,
    kFrozen,    // frames wait, and nothing moved for Scenario::freeze_after
    kDuration,  // the scenario's duration ended first
    kNotReady,  // the nodes did not join in time
  };

  // `time` must outlive it. Errors: those of SwitchedFabric::Build, OpenSoftDevice and
  // StoreHosts::Open.
  static absl::StatusOr<std::unique_ptr<Run>> Build(VirtualTime& time, Scenario scenario);

  // Starts the scenario's time: with a store once all nodes have joined, at most kMostPreparation
  // later; else now.
  void Start();
  static constexpr base::Duration kMostPreparation = base::Seconds(10);

  // Once true it stays so.
  bool over();
  Ending ending() const { return ending_; }

  bool quiet() const { return fabric_->frames_in_use() == 0; }

  // Returns roughly the part of the payload sent.
  double PartDone() const;

  // Returns paused queues with frames: "switch1:0 -> switch2, 120 KiB"; in a frozen network, the
  // circle.
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
  uint64_t Transmissions() const;  // frames on all cables, pauses included

 private:
  Run(VirtualTime& time, Scenario scenario) : loop_(time.MakeLoop()), scenario_(std::move(scenario)) {}
  void Begin();
  void ArmFreeze();
  uint64_t Moved() const;
  uint64_t Queued() const;
  void End(Ending ending);

  const std::unique_ptr<base::EventLoop> loop_;
  const Scenario scenario_;
  std::unique_ptr<SwitchedFabric> fabric_;
  std::vector<FabricPort> ports_;
  std::unique_ptr<Traffic> traffic_;
  std::unique_ptr<StoreHosts> stores_;  // null: no store
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

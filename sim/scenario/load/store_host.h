// StoreHost is a scenario's host with a node: memory, NICs as rails, and a program that puts and
// gets objects.
//
// The node has its own processor; the NICs are the scenario's, on the network's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/trace.h"
#include "lib/transport/memory/registration.h"
#include "lib/verbs/verbs.h"
#include "sim/cluster/simulated_node.h"
#include "sim/scenario/load/store_report.h"
#include "sim/scenario/scenario.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

class StoreHost final {
 public:
  using Done = std::function<void(const StoreReport&)>;

  // Arguments and devices must outlive it. `number`: in the topology. Errors: those of
  // Machine::Assemble.
  static absl::StatusOr<std::unique_ptr<StoreHost>> Open(VirtualTime& time, const Scenario& scenario, uint32_t number,
                                                         absl::Span<verbs::Device* const> devices);
  ~StoreHost();

  // Joins host 0's directory.
  void Start();

  // True if joined, and its objects known.
  bool settled() const;

  // `done` runs in a task of the node's loop. A got object is released at once.
  void Put(const std::string& object, uint64_t bytes, Done done);
  void Get(const std::string& object, transport::Protocol protocol, base::Duration timeout, Done done);

  // Here alone.
  void Drop(const std::string& object);

  // True if every get has returned the put's bytes (real payload).
  bool payload_is_right() const { return right_; }

 private:
  class Memory;

  struct Rail {
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<transport::Registration> registration;
  };

  struct Asked {
    base::Timer begin;
    base::Pending get;
    base::Timer end;
  };

  StoreHost(VirtualTime& time, const Scenario& scenario, uint32_t number);
  absl::Status OpenRail(verbs::Device& device);
  const HostCosts& costs() const { return scenario_.costs[number_]; }
  // Half of a program's round trip to its node, on the program's own processor.
  base::Timer Later(base::Task task) { return loop_->RunAfter(costs().client_round_trip / 2, std::move(task)); }
  SimulatedNodeOptions NodeOptions();
  node::Machine& machine() const { return node_->machine(); }
  absl::Status PutNow(const base::ObjectId& id, uint64_t bytes);
  void Answer(const base::ObjectId& id, bool was_here, const node::GetResult& result, Asked* asked, const Done& done);

  VirtualTime& time_;
  const Scenario& scenario_;
  const uint32_t number_;
  const std::unique_ptr<base::EventLoop> loop_;
  base::NoTrace trace_;
  const std::unique_ptr<Memory> memory_;
  std::vector<Rail> rails_;
  std::unique_ptr<SimulatedNode> node_;
  store::Owner me_{};
  std::map<base::ObjectId, StoreReport> pulled_;
  std::vector<std::unique_ptr<Asked>> asked_;
  bool right_ = true;
};

}  // namespace tokamak::sim

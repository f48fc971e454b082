// Hosts with a software NIC each, on one sim::Scheduler.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/fabric.h"
#include "sim/time/sim_loop.h"
#include "tests/verbs/conformance/backends/virtual_backend.h"

namespace tokamak::verbs::conformance {

class ScheduledBackend : public VirtualBackend {
 public:
  size_t device_count() const final { return nodes_.size(); }
  Device& device(size_t index) final { return *nodes_[index]->device; }
  base::EventLoop& loop(size_t index) final { return nodes_[index]->owner_loop; }

  bool Drive(const std::function<bool()>& done, base::Duration limit) final {
    const base::Time end = scheduler_.Now() + limit;
    if (scheduler_.RunUntil(done, end)) return true;
    scheduler_.RunUntil(end);  // time passes also where nothing happens
    return done();
  }

 protected:
  // A host and its NIC, each with a processor of its own; the NIC of a network whose loop it shares
  // does not use that.
  struct Node {
    explicit Node(sim::Scheduler& scheduler) : owner_loop(scheduler), nic_loop(scheduler) {}
    sim::SimLoop owner_loop;
    sim::SimLoop nic_loop;
    std::unique_ptr<soft::SoftDevice> device;
  };

  // `shared_loop`: the NIC's, unless it has its own.
  absl::Status Add(soft::Fabric& fabric, const soft::DeviceOptions& options, base::EventLoop* shared_loop = nullptr) {
    auto node = std::make_unique<Node>(scheduler_);
    base::EventLoop& loop = shared_loop != nullptr ? *shared_loop : node->nic_loop;
    auto device = soft::OpenSoftDevice(loop, fabric, trace_, options);
    if (!device.ok()) return device.status();
    node->device = *std::move(device);
    nodes_.push_back(std::move(node));
    return absl::OkStatus();
  }
  // Before the fabric that they are plugged into goes.
  void DropNodes() { nodes_.clear(); }
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  sim::Scheduler& scheduler() { return scheduler_; }
  const sim::Scheduler& scheduler() const { return scheduler_; }
  base::Trace& trace() { return trace_; }

 private:
  sim::Scheduler scheduler_;
  base::NoTrace trace_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace tokamak::verbs::conformance

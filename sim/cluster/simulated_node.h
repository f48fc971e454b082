// SimulatedNode assembles a node (lib/node/machine.h) in virtual time, with engine loops and the
// directory, which one node serves to the others.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/trace.h"
#include "lib/directory/local.h"
#include "lib/node/machine.h"
#include "lib/transport/memory/rail.h"
#include "lib/verbs/types.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

struct SimulatedNodeOptions {
  uint32_t engines = 1;  // for bulk; 0: the control loop's moves all
  CopySpeed copying;
  bool serves_directory = false;
  directory::LocalOptions served;
  verbs::Address directory;  // of its server
  node::MachineOptions machine;
};

class SimulatedNode final {
 public:
  // Arguments must outlive it. Errors: those of Machine::Assemble.
  static absl::StatusOr<std::unique_ptr<SimulatedNode>> Assemble(VirtualTime& time, base::EventLoop& control,
                                                                 absl::Span<uint8_t> arena,
                                                                 absl::Span<const transport::Rail> rails,
                                                                 base::Trace& trace,
                                                                 const SimulatedNodeOptions& options);

  node::Machine& machine() { return *machine_; }
  const node::Machine& machine() const { return *machine_; }

  // Returns nullptr if another node's.
  directory::LocalDirectory* served() const { return served_; }

  const std::vector<base::EventLoop*>& engine_loops() const { return engine_loops_; }

 private:
  SimulatedNode() = default;
  std::unique_ptr<node::DirectoryHost> OpenDirectory(base::EventLoop& control, node::Engine& engine,
                                                     base::Random random, const SimulatedNodeOptions& options);

  std::vector<base::EventLoop*> engine_loops_;
  directory::LocalDirectory* served_ = nullptr;
  std::unique_ptr<node::Machine> machine_;
};

}  // namespace tokamak::sim

#include "sim/cluster/simulated_node.h"

#include <utility>

#include "lib/node/directories/asked_directory.h"
#include "lib/node/directories/served_directory.h"

namespace tokamak::sim {
namespace {

class EngineLoop final : public node::EngineLoop {
 public:
  EngineLoop(VirtualTime& time, CopySpeed copying) : loop_(time.MakeLoop(copying)) {}
  base::EventLoop& loop() override { return *loop_; }
  void CallOn(absl::FunctionRef<void()> call) override { call(); }
  void Stop() override {}

 private:
  const std::unique_ptr<base::EventLoop> loop_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SimulatedNode>> SimulatedNode::Assemble(VirtualTime& time, base::EventLoop& control,
                                                                       absl::Span<uint8_t> arena,
                                                                       absl::Span<const transport::Rail> rails,
                                                                       base::Trace& trace,
                                                                       const SimulatedNodeOptions& options) {
  std::unique_ptr<SimulatedNode> simulated(new SimulatedNode);
  std::vector<std::unique_ptr<node::EngineLoop>> engines;
  for (uint32_t engine = 0; engine < options.engines; ++engine) {
    engines.push_back(std::make_unique<EngineLoop>(time, options.copying));
    simulated->engine_loops_.push_back(&engines.back()->loop());
  }
  const auto directory = [&](node::Engine& engine, base::Random random) {
    return simulated->OpenDirectory(control, engine, random, options);
  };
  auto machine =
      node::Machine::Assemble({control, std::move(engines), arena, rails, rails, directory, trace}, options.machine);
  if (!machine.ok()) return machine.status();
  simulated->machine_ = *std::move(machine);
  return simulated;
}

std::unique_ptr<node::DirectoryHost> SimulatedNode::OpenDirectory(base::EventLoop& control, node::Engine& engine,
                                                                  base::Random random,
                                                                  const SimulatedNodeOptions& options) {
  if (!options.serves_directory)
    return std::make_unique<node::AskedDirectory>(control, engine, options.directory, random);
  auto served = std::make_unique<node::ServedDirectory>(control, options.served, engine.max_call_size() - 1);
  served_ = &served->local();
  return served;
}

}  // namespace tokamak::sim

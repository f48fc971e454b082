// SPDX-License-Identifier: GPL-2.0-only
//
// Experiments on ns-3's scheduler: scenarios, options and results are those of
// //sim/scenario:experiment, to the last byte.
//
//   bazel run -c opt //sim/ns3:experiment -- run SCENARIO --out DIR
#include "ns3/simulator.h"
#include "sim/ns3/ns3_loop.h"
#include "sim/scenario/program.h"

namespace tokamak::sim {
namespace {

class Ns3Time final : public VirtualTime {
 public:
  base::EventLoop& loop() override { return loop_; }
  void RunUntil(const std::function<bool()>& done, base::Time limit) override { Ns3Loop::RunUntil(done, limit); }
  uint64_t events() const override { return ns3::Simulator::GetEventCount(); }

 private:
  Ns3Loop loop_;
};

}  // namespace
}  // namespace tokamak::sim

int main(int argc, char** argv) {
  tokamak::sim::PrepareSimulator();
  tokamak::sim::Ns3Time time;
  return tokamak::sim::ExperimentProgram(argc, argv, time);
}

// Experiments in this project's own virtual time.
//
//   bazel run -c opt //sim/scenario:experiment -- run SCENARIO --out DIR
//   bazel run -c opt //sim/scenario:experiment -- sweep SCENARIO --set KEY=A,B,C --out DIR
#include "sim/scenario/program.h"
#include "sim/sim_loop.h"

namespace tokamak::sim {
namespace {

class SimTime final : public VirtualTime {
 public:
  base::EventLoop& loop() override { return loop_; }
  void RunUntil(const std::function<bool()>& done, base::Time limit) override { scheduler_.RunUntil(done, limit); }
  uint64_t events() const override { return scheduler_.tasks_run(); }

 private:
  Scheduler scheduler_;
  SimLoop loop_{scheduler_};
};

}  // namespace
}  // namespace tokamak::sim

int main(int argc, char** argv) {
  tokamak::sim::SimTime time;
  return tokamak::sim::ExperimentProgram(argc, argv, time);
}

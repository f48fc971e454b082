// Experiments in this project's own virtual time.
//
//   bazel run -c opt //sim/scenario:experiment -- run SCENARIO --out DIR
//   bazel run -c opt //sim/scenario:experiment -- sweep SCENARIO --set KEY=A,B,C --out DIR
#include "sim/scenario/program.h"
#include "sim/time/sim_time.h"

int main(int argc, char** argv) {
  tokamak::sim::SimTime time;
  return tokamak::sim::ExperimentProgram(argc, argv, time);
}

// SPDX-License-Identifier: GPL-2.0-only
//
// Experiments on ns-3's scheduler: scenarios, options and results are those of
// //sim/scenario:experiment, to the last byte.
//
//   bazel run -c opt //sim/ns3:experiment -- run SCENARIO --out DIR
#include "sim/ns3/ns3_time.h"
#include "sim/scenario/program.h"

int main(int argc, char** argv) {
  tokamak::sim::Ns3Time time;
  return tokamak::sim::ExperimentProgram(argc, argv, time);
}

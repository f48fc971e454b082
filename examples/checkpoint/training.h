// Training is the loop that is measured: steps, and after every few of them a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/checkpoint/checkpoints.h"
#include "examples/checkpoint/model.h"
#include "examples/moments.h"
#include "tokamak/status.h"

namespace tokamak::example {

struct TrainingOptions {
  uint64_t steps = 100;  // of the whole run: those that were done before it was resumed among them
  uint64_t every = 10;   // steps between two checkpoints; the last step is followed by one in any case
  OnMoment on_moment;    // "step N": N steps are done
};

struct TrainingReport {
  // Seconds, of each step with the checkpoint behind it if there was one.
  std::vector<double> steps_alone;
  std::vector<double> steps_with_checkpoint;  // without the final one, for which the loop waits
  double total = 0;                           // from the first step to the end of the last, without Finish
  double finish = 0;                          // what the final checkpoint took, and waiting for it
  uint64_t skipped = 0;                       // checkpoints left out, as the one before was under way
  double loss = 0;
};

// Trains up to options.steps. `checkpoints` may be null: none are taken.
Status Train(Model& model, Checkpoints* checkpoints, const TrainingOptions& options, TrainingReport& report);

// "median 41.2 ms, 90th percentile 44.0 ms, longest 61.3 ms"; "none" where there are no times.
std::string DescribeTimes(std::vector<double> seconds);

}  // namespace tokamak::example

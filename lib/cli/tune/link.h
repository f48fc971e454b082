// MeasureLink measures a program's Gets from one node to another, by every protocol, and fits a
// table to their times.
//
// Each pull has an object of its own, made on the holder before and deleted everywhere after:
// nothing is left on either node, and other objects are untouched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "lib/base/time.h"
#include "lib/cli/common/undo.h"
#include "lib/cli/tune/holder.h"
#include "lib/cli/tune/tuning_plan.h"
#include "tokamak/client.h"

namespace tokamak::cli::tune {

// Test objects take at most one part in this many of a node's memory at a time.
constexpr uint64_t kMemoryPart = 8;

constexpr uint64_t kUsualMost = 16 << 20;

struct LinkSettings {
  base::Duration budget = base::Seconds(10);
  uint64_t least = 1024;  // smallest size, in bytes
  uint64_t most = 0;      // largest; 0: kUsualMost, or less if a node's memory is small
  uint64_t seed = 1;      // of the order and the ids
};

struct LinkTimes {
  transport::PolicyFit fit;
  std::vector<transport::SizeTimes> times;
  size_t pulls = 0;
  base::Duration took;
};

// Reports the results at the end of a round.
using OnRound = std::function<void(const TuningPlan& plan, base::Duration elapsed)>;

// Ends when all crossovers are known well, or the budget is spent. kInvalidArgument: both are the
// same node, or `most` exceeds an eighth of a node's memory. kResourceExhausted: a node has no room
// now. kDeadlineExceeded: the budget does not suffice for a table. Other errors as the calls of
// `puller` and `holder`.
absl::StatusOr<LinkTimes> MeasureLink(Client& puller, Holder& holder, const LinkSettings& settings, Undo& undo,
                                      const OnRound& on_round);

}  // namespace tokamak::cli::tune

// MeasureLink measures what pulls from one node to another take, by every protocol, and fits a
// table to it.
//
// Each pull is of an object of its own, which is made on the holder for it and deleted everywhere
// after it, so that nothing is left on either node, and nothing of others is touched. What is
// measured is a program's Get.
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

// Test objects take at most this part of a node's memory at a time.
constexpr uint64_t kMemoryPart = 8;

constexpr uint64_t kUsualMost = 16 << 20;

struct LinkSettings {
  base::Duration budget = base::Seconds(10);
  uint64_t least = 1024;  // sizes
  uint64_t most = 0;      // 0: kUsualMost, or less where a node's memory asks for it
  uint64_t seed = 1;      // of the order, and of the objects' ids
};

struct LinkTimes {
  transport::PolicyFit fit;
  std::vector<transport::SizeTimes> times;
  size_t pulls = 0;
  base::Duration took;
};

// What has been found by the end of a round.
using OnRound = std::function<void(const TuningPlan& plan, base::Duration elapsed)>;

// Ends when all crossovers are known well, or the budget is spent. kInvalidArgument: both are the
// same node, or `most` is more than an eighth of a node's memory; kResourceExhausted: a node has no
// room for it now; kDeadlineExceeded: the budget does not suffice for a table; and what the calls
// of `puller` and `holder` say.
absl::StatusOr<LinkTimes> MeasureLink(Client& puller, Holder& holder, const LinkSettings& settings, Undo& undo,
                                      const OnRound& on_round);

}  // namespace tokamak::cli::tune

// MeasureLink measures a program's Gets from one node to another, by every protocol, and fits a
// table to their times.
//
// Each pull has its own object, made before on the holder and deleted everywhere after.
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

// Test objects take at most one part in this many of a node's memory.
constexpr uint64_t kMemoryPart = 8;

constexpr uint64_t kUsualMost = 16 << 20;

struct LinkSettings {
  base::Duration budget = base::Seconds(10);
  uint64_t least = 1024;  // bytes
  uint64_t most = 0;      // 0: kUsualMost, or less with small memory
  uint64_t seed = 1;
};

struct LinkTimes {
  transport::PolicyFit fit;
  std::vector<transport::SizeTimes> times;
  size_t pulls = 0;
  base::Duration took;
};

using OnRound = std::function<void(const TuningPlan& plan, base::Duration elapsed)>;

// Ends with all crossovers known, or the budget spent. kInvalidArgument: one node, or `most` beyond
// an eighth of a node's memory. kResourceExhausted: no room now. kDeadlineExceeded: no table within
// the budget. Others as the calls of `puller` and `holder`.
absl::StatusOr<LinkTimes> MeasureLink(Client& puller, Holder& holder, const LinkSettings& settings, Undo& undo,
                                      const OnRound& on_round);

}  // namespace tokamak::cli::tune

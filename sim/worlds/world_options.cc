#include "sim/worlds/world_options.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "lib/base/units.h"
#include "sim/worlds/trials.h"

namespace tokamak::sim {

namespace {

constexpr uint32_t kMostOfTrials = 9;  // nodes

// Small bounds, on a network fast enough for them.
void DrawBounds(base::Random random, WorldOptions& options) {
  if (options.nodes > kMostOfTrials || random.Chance(0.2)) return;
  if (random.Chance(0.6)) {
    options.latency = std::min(options.latency, base::Microseconds(200));
    options.picoseconds_per_byte = std::min<int64_t>(options.picoseconds_per_byte, 8'000);
    if (random.Chance(0.7)) options.lease = base::Milliseconds(100);
    // a node that lost the directory's connection is back within a lease
    options.ack_timeout = options.lease / 25;
  }
  if (random.Chance(0.8)) options.tombstones = 16;
  if (random.Chance(0.8)) options.words_at_once = 4;
  if (options.words_at_once < directory::kMaxUpdates && random.Chance(0.6)) options.max_dirty = 32;
  if (random.Chance(0.8)) options.engine_calls = 64;
  for (size_t trial = 0; trial < Trials::All().size(); ++trial) {
    if (random.Chance(0.8)) options.trials |= uint32_t{1} << trial;
  }
}

}  // namespace

WorldOptions WorldOptions::OfSeed(uint64_t seed) {
  base::Random random(seed);
  WorldOptions options;
  options.seed = seed;
  options.nodes = static_cast<uint32_t>(3 + random.Below(7));
  options.ids = static_cast<uint32_t>(1 + random.Below(8));
  if (random.Chance(0.02)) {  // more holders than one answer names
    options.nodes = 70;
    options.ids = 2;
    options.steps = 200;
  }
  options.calm = random.Chance(0.15);
  for (double* fault : {&options.freeze, &options.cut, &options.partition, &options.crash, &options.directory_crash,
                        &options.slow, &options.lag, &options.loss}) {
    if (options.calm || random.Chance(0.4)) *fault = 0;
  }
  static constexpr base::Duration kLatencies[] = {base::Microseconds(2), base::Microseconds(200),
                                                  base::Milliseconds(5)};
  static constexpr int64_t kRates[] = {80, 8'000, 800'000};  // picoseconds per byte: 100 Gb/s, 1 Gb/s, 10 Mb/s
  options.latency = kLatencies[random.Below(3)];
  options.picoseconds_per_byte = kRates[random.Below(3)];
  DrawBounds(base::Random(seed).Fork(2), options);
  options.secured = base::Random(seed).Fork(3).Chance(0.5);
  return options;
}

std::string WorldOptions::Describe() const {
  std::string text = absl::StrCat(
      "seed ", seed, ": ", nodes, " nodes, ", ids, " ids, ", steps, " steps, at most ",
      base::FormatDuration(most_between), " between; latency ", base::FormatDuration(latency), ", ",
      picoseconds_per_byte, " ps for each byte; lease ", base::FormatDuration(lease), ", tombstones ", tombstones,
      ", most dirty ", max_dirty, ", words at once ", words_at_once, ", engine calls ", engine_calls, ", ack timeout ",
      base::FormatDuration(ack_timeout), calm ? "; calm" : "", secured ? "; secured" : "", "\nfaults: freeze ", freeze,
      ", cut ", cut, ", partition ", partition, ", crash ", crash, ", crash of the directory ", directory_crash,
      ", slow ", slow, ", lag ", lag, ", mend ", mend, ", loss ", loss, "\ntrials, each with ", trial, ":");
  for (size_t i = 0; i < Trials::All().size(); ++i) {
    if ((trials >> i & 1) != 0) absl::StrAppend(&text, " ", Trials::All()[i].name);
  }
  return text;
}

}  // namespace tokamak::sim

#include "sim/emulation/lag_meter.h"

#include <algorithm>

namespace tokamak::sim {

void LagMeter::Add(base::Duration lag) {
  const base::Duration late = std::max(lag, base::Duration());
  total_.Add(late);
  recent_.Add(late);
}

LagMeter::Lag LagMeter::TakeRecent() {
  const Lag lag = recent_.Read();
  recent_ = Counts();
  return lag;
}

void LagMeter::Counts::Add(base::Duration lag) {
  ++samples;
  most = std::max(most, lag);
  ++buckets[BucketOf(static_cast<uint64_t>(lag.picoseconds()))];
}

LagMeter::Lag LagMeter::Counts::Read() const {
  Lag lag;
  lag.samples = samples;
  lag.most = most;
  const uint64_t above = samples / 100;  // most samples above the percentile
  uint64_t seen = 0;
  for (uint32_t i = kBuckets; i-- > 0;) {
    seen += buckets[i];
    if (seen <= above) continue;
    lag.percentile99 = std::min(most, base::Duration::Picoseconds(static_cast<int64_t>(TopOf(i))));
    break;
  }
  return lag;
}

uint32_t LagMeter::BucketOf(uint64_t picoseconds) {
  if (picoseconds < kSteps) return static_cast<uint32_t>(picoseconds);
  const int power = 63 - __builtin_clzll(picoseconds);  // at least 3
  const auto step = static_cast<uint32_t>(picoseconds >> (power - 3)) - kSteps;
  return static_cast<uint32_t>(power - 2) * kSteps + step;
}

uint64_t LagMeter::TopOf(uint32_t bucket) {
  if (bucket < kSteps) return bucket;
  const uint32_t power = bucket / kSteps + 2;
  const uint64_t step = bucket % kSteps + kSteps;
  return ((step + 1) << (power - 3)) - 1;
}

}  // namespace tokamak::sim

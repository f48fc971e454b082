// PhaseLog records the time that pulls spend in each phase (trace.h), and that programs wait for
// gets. It gives a table of totals, or a file for Perfetto.
//
// A log of real loops needs a clock: a loop's time stands still during a task, and each loop counts
// from its own beginning. Without a clock the time of the events counts, as in simulations.
//
// An activity begins with kDirectory or kSession. Events of one that has not begun, or is over, are
// ignored: an engine on another thread may be late.
// Bounds: kMaxOpen activities at once, and `most` phases; more are counted.
// Thread rule: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "lib/base/mutex.h"
#include "lib/base/time.h"
#include "lib/base/trace.h"

namespace tokamak::base {

class PhaseLog final : public Trace {
 public:
  using Clock = std::function<Time()>;

  struct Entry {
    uint32_t node;
    uint64_t activity;
    Phase phase;
    Time begin;
    Duration length;
  };

  struct Totals {
    uint64_t activities = 0;  // ended pulls
    std::array<Duration, kPhases> phases{};
  };

  static constexpr size_t kMaxOpen = 65536;

  // Allocates its memory now, so that recording allocates none.
  explicit PhaseLog(size_t most, Clock clock = nullptr);

  void Record(const TraceEvent& event) override;

  // Returns activities that ended since the last call, also those without room here.
  Totals TakeTotals();
  std::vector<Entry> entries() const;
  uint64_t dropped() const;  // phases, for want of room

  // Writes chrome://tracing's format, for Perfetto: a track for each activity.
  void WriteTraceEvents(std::ostream& out) const;

 private:
  struct Open {
    Phase phase;
    Time began;  // of the phase
    std::array<Duration, kPhases> spent{};
  };
  using Key = std::pair<uint32_t, uint64_t>;  // node, activity

  const size_t most_;
  const Clock clock_;
  mutable Mutex mutex_;
  absl::flat_hash_map<Key, Open> open_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Totals totals_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tokamak::base

#include "lib/base/phase_log.h"

#include <utility>

#include "absl/strings/str_format.h"

namespace tokamak::base {

PhaseLog::PhaseLog(size_t most, Clock clock) : most_(most), clock_(std::move(clock)) {
  constexpr size_t kUsuallyOpen = 1024;  // activities
  entries_.reserve(most);
  open_.reserve(kUsuallyOpen);
}

void PhaseLog::Record(const TraceEvent& event) {
  if (event.kind != TraceKind::kPhase) return;
  const auto next = static_cast<Phase>(event.number);
  const Time now = clock_ == nullptr ? event.time : clock_();
  const Key key{event.node, event.activity};
  const MutexLock lock(mutex_);
  const auto found = open_.find(key);
  if (found == open_.end()) {
    if (next != Phase::kDirectory && next != Phase::kSession) return;
    if (open_.size() == kMaxOpen) {
      ++dropped_;
    } else {
      open_.emplace(key, Open{next, now});
    }
    return;
  }
  Open& open = found->second;
  if (next == open.phase) return;
  const Duration length = now - open.began;
  const bool is_get = open.phase == Phase::kSession;
  if (!is_get) {
    Duration& spent = open.spent[static_cast<size_t>(open.phase)];
    spent = spent + length;
  }
  if (entries_.size() < most_) {
    entries_.push_back({event.node, event.activity, open.phase, open.began, length});
  } else {
    ++dropped_;
  }
  open.phase = next;
  open.began = now;
  if (next != Phase::kOver) return;
  if (!is_get) {
    ++totals_.activities;
    for (size_t i = 0; i < kPhases; ++i) totals_.phases[i] = totals_.phases[i] + open.spent[i];
  }
  open_.erase(found);
}

PhaseLog::Totals PhaseLog::TakeTotals() {
  const MutexLock lock(mutex_);
  return std::exchange(totals_, Totals());
}

std::vector<PhaseLog::Entry> PhaseLog::entries() const {
  const MutexLock lock(mutex_);
  return entries_;
}

uint64_t PhaseLog::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

void PhaseLog::WriteTraceEvents(std::ostream& out) const {
  const MutexLock lock(mutex_);
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const char* separator = "\n";
  const auto write = [&](const Entry& entry, char kind, Time time) {
    out << std::exchange(separator, ",\n")
        << absl::StrFormat(R"({"name":"%s","cat":"%s","ph":"%c","id":"%d.%d","pid":%d,"tid":0,"ts":%.3f})",
                           ToString(entry.phase), entry.phase == Phase::kSession ? "get" : "pull", kind, entry.node,
                           entry.activity, entry.node, static_cast<double>((time - Time()).nanoseconds()) / 1e3);
  };
  for (const Entry& entry : entries_) {
    write(entry, 'b', entry.begin);
    write(entry, 'e', entry.begin + entry.length);
  }
  out << "\n]}\n";
}

}  // namespace tokamak::base

#include "sim/scenario/progress.h"

#include <string>

#include "absl/strings/str_format.h"
#include "lib/base/units.h"

namespace tokamak::sim {

void Progress::Print(uint64_t events, base::Duration simulated, double part) {
  const Clock::time_point now = Clock::now();
  const double rate = static_cast<double>(events - last_events_) / std::chrono::duration<double>(now - last_).count();
  std::string left = "unknown";
  if (part > 0) left = absl::StrFormat("about %.0f s", seconds() * (1 - part) / part);
  out_ << absl::StrFormat("%s simulated, %.0f %% of the payload sent, %.2f M events/s, time left: %s\n",
                          base::FormatDuration(simulated), 100 * part, rate / 1e6, left)
       << std::flush;
  last_ = now;
  last_events_ = events;
}

}  // namespace tokamak::sim

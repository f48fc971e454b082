#include "sim/fabric/switch/pfc_watchdog.h"

namespace tokamak::sim {

void PfcWatchdog::Watch(uint32_t port) {
  if (!enabled()) return;
  const EgressPort& egress = ports_[port]->egress;
  for (uint8_t i = 0; i < kPriorities; ++i) {
    if (egress.paused(i) && !ports_[port]->timers[i].armed()) {
      Arm(port, i, egress.paused_since(i) + options_.detection);
    }
  }
}

// Allocates, as every task that captures more than 16 bytes; it is rare.
void PfcWatchdog::Arm(uint32_t port, uint8_t priority, base::Time time) {
  ports_[port]->timers[priority] = loop_.RunAt(time, [this, port, priority] { Look(port, priority); });
}

void PfcWatchdog::Look(uint32_t port, uint8_t priority) {
  Port& watched = *ports_[port];
  const EgressPort& egress = watched.egress;
  const base::Time now = loop_.Now();
  const auto bit = static_cast<uint8_t>(1u << priority);
  if (storm(port, priority)) {
    const base::Time healthy = egress.last_paused(priority) + options_.restoration;
    if (healthy > now) return Arm(port, priority, healthy);
    watched.storms = static_cast<uint8_t>(watched.storms & ~bit);
    on_storm_(port, priority, false);
    return Watch(port);  // a long pause may go on
  }
  if (!egress.paused(priority)) return;
  const base::Time due = egress.paused_since(priority) + options_.detection;
  if (due > now) return Arm(port, priority, due);
  if (egress.queue(priority).empty()) return Arm(port, priority, now + options_.detection);
  watched.storms = static_cast<uint8_t>(watched.storms | bit);
  Arm(port, priority, egress.last_paused(priority) + options_.restoration);
  on_storm_(port, priority, true);
}

}  // namespace tokamak::sim

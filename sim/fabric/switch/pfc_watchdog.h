// PfcWatchdog finds the queues of one switch that have been paused for too long, and those that
// have recovered. It sleeps while nothing is paused.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/base/event_loop.h"
#include "sim/fabric/switch/egress_port.h"
#include "sim/fabric/switch/watchdog_options.h"

namespace tokamak::sim {

class PfcWatchdog final {
 public:
  // `on_storm` runs at both ends of each storm, from the loop, never during Watch.
  PfcWatchdog(base::EventLoop& loop, const WatchdogOptions& options,
              std::function<void(uint32_t port, uint8_t priority, bool storm)> on_storm)
      : loop_(loop), options_(options), on_storm_(std::move(on_storm)) {}

  bool enabled() const { return options_.detection > base::Duration(); }

  void AddPort(const EgressPort& port) { ports_.push_back(std::make_unique<Port>(port)); }

  // The port got a pause frame.
  void Watch(uint32_t port);

  bool storm(uint32_t port, uint8_t priority) const {
    return enabled() && (ports_[port]->storms & 1u << priority) != 0;
  }

 private:
  struct Port {
    explicit Port(const EgressPort& e) : egress(e) {}
    const EgressPort& egress;
    uint8_t storms = 0;
    std::array<base::Timer, kPriorities> timers;
  };

  void Arm(uint32_t port, uint8_t priority, base::Time time);
  void Look(uint32_t port, uint8_t priority);

  base::EventLoop& loop_;
  const WatchdogOptions options_;
  const std::function<void(uint32_t port, uint8_t priority, bool storm)> on_storm_;
  std::vector<std::unique_ptr<Port>> ports_;  // stay where they are
};

}  // namespace tokamak::sim

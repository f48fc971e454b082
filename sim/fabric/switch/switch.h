// Switch receives whole frames, looks up where each goes, and queues it there: output queues in a
// shared buffer.
//
// Forwarding takes no time: a frame to a free port leaves at once.
//
// Law: received == sent + dropped + queued(), in frames without pause frames.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/random.h"
#include "sim/fabric/link/environment.h"
#include "sim/fabric/link/link.h"
#include "sim/fabric/switch/class_scheduler.h"
#include "sim/fabric/switch/ecn_marker.h"
#include "sim/fabric/switch/egress_port.h"
#include "sim/fabric/switch/pause_sender.h"
#include "sim/fabric/switch/pfc_watchdog.h"
#include "sim/fabric/switch/port_counters.h"
#include "sim/fabric/switch/route_table.h"
#include "sim/fabric/switch/shared_buffer.h"
#include "sim/fabric/switch/watchdog_options.h"

namespace tokamak::sim {

struct SwitchOptions {
  BufferOptions buffer;
  PfcOptions pfc;
  EcnOptions ecn;
  SchedulingOptions scheduling;
  WatchdogOptions watchdog;
};

class Switch final : public FrameReceiver, private EgressOwner {
 public:
  // `node`: for observers.
  Switch(Environment& environment, const SwitchOptions& options, uint32_t node, const base::Random& random);
  ~Switch() override = default;

  // Adds the next port, which sends into `out`; a link of the same parameters is connected to it.
  uint32_t AddPort(Link& out);

  // Runs once all ports are there.
  absl::Status Start() { return buffer_.Start(); }

  // Takes effect now; queued frames stay where they are.
  void SetRoutes(RouteTable routes) { routes_ = std::move(routes); }

  void OnLinkChange(uint32_t port, bool up);

  void Receive(Frame* frame, uint32_t port) override;

  uint32_t ports() const { return static_cast<uint32_t>(ports_.size()); }
  EgressPort& egress(uint32_t port) { return ports_[port]->egress; }
  const SharedBuffer& buffer() const { return buffer_; }
  PortCounters counters(uint32_t port) const { return ports_[port]->egress.counters(); }
  uint64_t queued() const;  // frames

 private:
  struct Port {
    Port(Environment& environment, Switch& owner, Link& out, const Place& place, const SwitchOptions& options,
         const base::Random& random)
        : egress(environment, owner, out, place, options.scheduling),
          pauses(environment.loop, egress, options.pfc.quanta),
          marker(options.ecn, random) {}
    EgressPort egress;
    PauseSender pauses;
    EcnMarker marker;
  };

  // EgressOwner.
  void OnDequeue(uint32_t port, const Frame& frame) override;
  PauseFrame MakePause(uint32_t port) override { return ports_[port]->pauses.Make(); }
  void OnIdle(uint32_t) override {}
  void OnResumed(uint32_t) override {}

  void Forward(Frame* frame, uint32_t egress);
  void Mark(Frame* frame, Port* egress);
  void UpdatePause(uint32_t port, uint8_t priority);
  void OnStorm(uint32_t port, uint8_t priority, bool storm);
  void Drop(Frame* frame, uint32_t port, DropReason reason);

  Environment& environment_;
  const SwitchOptions options_;
  const uint32_t node_;
  const base::Random random_;
  SharedBuffer buffer_;
  RouteTable routes_;
  PfcWatchdog watchdog_;
  std::vector<std::unique_ptr<Port>> ports_;  // at stable addresses
};

}  // namespace tokamak::sim

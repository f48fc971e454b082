// FaultyFabric lies over another fabric and makes devices vanish, loses packets within reason, and
// is busy at times.
//
// Loss within reason: each packet is lost with the given probability, but the same packet of a
// queue pair (destination, opcode, PSN) at most twice. A reliable connection gives up after
// kMaxRetryCount retries, and with plain chance that is bound to happen somewhere in a suite of
// thousands of messages at 20 % loss. Like this it never happens to a correct device: a request can
// be lost twice and what answers it twice, which leaves retries to spare.
//
// Busy: a port takes a few packets only and says later that it is ready again, as Port allows.
//
// Thread rule: ports as their fabric says; Vanish from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/base/event_loop.h"
#include "lib/verbs/soft/fabric.h"

namespace tokamak::verbs::conformance {

struct Faults {
  double loss = 0;  // probability, for each packet
  bool busy = false;
  uint64_t seed = 0;
};

class FaultyFabric final : public soft::Fabric {
 public:
  static constexpr int kMostLossesOfAPacket = 2;

  // Must be dropped after its ports; `below` must outlive it.
  explicit FaultyFabric(soft::Fabric& below, const Faults& faults = {}) : below_(below), faults_(faults) {}

  absl::StatusOr<std::unique_ptr<soft::Port>> Open(base::EventLoop& loop, const Address& address,
                                                   soft::PortCallbacks callbacks) override;

  // Nothing leaves or reaches the port that was opened as number `index` (from 0) any more.
  void Vanish(size_t index) { gone_[index] = true; }

 private:
  class FaultyPort;
  static constexpr size_t kMaxPorts = 8;

  soft::Fabric& below_;
  const Faults faults_;
  size_t opened_ = 0;
  std::atomic<bool> gone_[kMaxPorts] = {};
};

}  // namespace tokamak::verbs::conformance

// FaultyFabric is another fabric on a bad day: it loses, damages and delays packets as a seed has
// it.
//
// A packet's fate follows only from the seed and from how many packets its port had sent before.
// Packets are not reordered. While the fabric is down, its ports silently send and receive nothing.
//
// Thread rule: that of the inner fabric, which must outlive this one, as this one must its ports.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "lib/verbs/soft/fabric.h"

namespace tokamak::verbs::soft {

struct FabricFaults {
  double loss = 0;        // share of packets that is lost, 0 to 1
  double corruption = 0;  // share of the others that arrives damaged; its receiver drops it
  base::Duration delay;   // of each packet
  uint64_t seed = 1;

  bool any() const { return loss > 0 || corruption > 0 || delay > base::Duration(); }
};

enum class PacketFate : uint8_t { kArrives, kIsLost, kIsDamaged };

PacketFate FateOf(const FabricFaults& faults, uint64_t number);

// Over all ports.
struct FaultCounters {
  uint64_t lost = 0;
  uint64_t damaged = 0;
  uint64_t while_down = 0;  // sent and received
};

// Shared with the ports.
struct FaultyLink {
  bool up = true;
  FaultCounters counters;
};

class FaultyFabric final : public Fabric {
 public:
  // Packets that a port holds back; beyond that it is busy.
  static constexpr size_t kMaxHeldBack = 4096;

  FaultyFabric(Fabric& inner, const FabricFaults& faults) : inner_(inner), faults_(faults) {}

  absl::StatusOr<std::unique_ptr<Port>> Open(base::EventLoop& loop, const Address& address,
                                             PortCallbacks callbacks) override;

  void set_up(bool up) { link_.up = up; }

  const FaultCounters& counters() const { return link_.counters; }

 private:
  Fabric& inner_;
  const FabricFaults faults_;
  FaultyLink link_;
};

}  // namespace tokamak::verbs::soft

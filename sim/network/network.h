// Network is the world of a simulated cluster: virtual time, a fabric in it, and faults of packets
// on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/types/span.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/fabric.h"
#include "lib/verbs/types.h"
#include "sim/network/sim_fabric.h"
#include "sim/time/virtual_time.h"

namespace tokamak::sim {

struct NetworkOptions {
  uint64_t seed = 1;
  LinkOptions link;  // between any two addresses
  // Hosts at most, at 10.0.RAIL.1 and up, if there are switches.
  uint32_t hosts = 16;
  uint32_t rails = 1;
};

class Network {
 public:
  virtual ~Network() = default;

  virtual VirtualTime& time() = 0;
  virtual verbs::soft::Fabric& fabric() = 0;

  // Cuts one direction, also for packets in flight.
  virtual void Cut(const verbs::Address& from, const verbs::Address& to) = 0;
  virtual void Mend(const verbs::Address& from, const verbs::Address& to) = 0;
  // Separates these from all others; a second call replaces the first.
  virtual void Partition(absl::Span<const verbs::Address> side) = 0;
  // Ends every Cut and Partition.
  virtual void Heal() = 0;

  // Takes effect now. If all share cables, only the losses count.
  virtual void SetAllLinks(const LinkOptions& options) = 0;
  // Returns whether each direction between two addresses is a link of its own, as SetLink needs.
  virtual bool has_links() const = 0;
  virtual void SetLink(const verbs::Address& from, const verbs::Address& to, const LinkOptions& options) = 0;
};

// `trace` outlives the network, which has its own virtual time.
using NetworkMaker = std::function<std::unique_ptr<Network>(const NetworkOptions&, base::Trace& trace)>;

}  // namespace tokamak::sim

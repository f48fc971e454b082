// IdealTimes computes how long a transfer takes when it has the network to itself: its slowdown in
// a run is measured against that.
//
// It counts every packet over every cable, stored and forwarded by each switch, and the
// acknowledgement back, without windows or rates. The first of several shortest ways counts. An
// idle network takes exactly as long (two_hosts in scenarios/).
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/time.h"
#include "sim/fabric/topology/topology.h"
#include "sim/scenario/transfer.h"

namespace tokamak::sim {

class IdealTimes final {
 public:
  // The topology must outlive it.
  IdealTimes(const Topology& topology, uint32_t mtu);

  // Returns the time from the first bit of the first packet until the request completes at its
  // poster.
  base::Duration Of(const Transfer& transfer);

 private:
  using Way = std::vector<const LinkParameters*>;  // cables, in order

  Way FindWay(uint32_t from, uint32_t to) const;
  // Returns the time at which the last of these packets, by their bytes on the wire, has arrived.
  static base::Duration Through(const Way& way, const std::vector<uint32_t>& packets);

  const Topology& topology_;
  const uint32_t mtu_;
  std::vector<Topology::End> interfaces_;
  std::vector<bool> ipv6_;
  std::vector<std::vector<uint32_t>> cables_;  // of each node

  // A cache: many transfers go the same way.
  uint32_t last_from_ = UINT32_MAX;
  uint32_t last_to_ = UINT32_MAX;
  Way way_;
};

}  // namespace tokamak::sim

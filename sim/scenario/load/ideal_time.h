// IdealTimes computes how long a transfer takes alone on the network, the base of its slowdown in a
// run.
//
// Every packet over every cable, stored and forwarded, and the ACK back, without windows or rates,
// by the first shortest way: exact on an idle network (two_hosts in scenarios/).
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

  // Returns the time from the first packet's first bit to the request's completion.
  base::Duration Of(const Transfer& transfer);

 private:
  using Way = std::vector<const LinkParameters*>;

  Way FindWay(uint32_t from, uint32_t to) const;
  // Returns the arrival of the last of these packets, in wire bytes.
  static base::Duration Through(const Way& way, const std::vector<uint32_t>& packets);

  const Topology& topology_;
  const uint32_t mtu_;
  std::vector<Topology::End> interfaces_;
  std::vector<bool> ipv6_;
  std::vector<std::vector<uint32_t>> cables_;  // by node

  // Many transfers go the same way.
  uint32_t last_from_ = UINT32_MAX;
  uint32_t last_to_ = UINT32_MAX;
  Way way_;
};

}  // namespace tokamak::sim

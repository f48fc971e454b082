// SPDX-License-Identifier: GPL-2.0-only
//
// RoceSwitch makes a Node a switch: an ns-3 Object that is aggregated to the node, over a
// sim::Switch.
// The node's RoceNetDevices are its ports.
//
// Attributes take effect when the network is built, see roce_network.h.
#pragma once

#include <cstdint>
#include <string>

#include "ns3/nstime.h"
#include "ns3/object.h"
#include "sim/fabric/switch/switch.h"

namespace tokamak::sim {

class RoceSwitch final : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();

  SwitchOptions Describe() const;

  void Assign(const SwitchOptions& options);

 private:
  friend class RoceNetwork;

  uint64_t buffer_bytes_ = 0;
  uint64_t reserved_ = 0;
  double ingress_alpha_ = 0;
  double egress_alpha_ = 0;
  uint32_t mtu_ = 0;
  uint8_t lossless_ = 0;
  uint64_t xoff_ = 0;
  uint64_t xon_ = 0;
  uint64_t headroom_ = 0;
  ns3::Time response_;
  uint16_t quanta_ = 0;
  uint64_t ecn_minimum_ = 0;
  uint64_t ecn_maximum_ = 0;
  double ecn_probability_ = 0;
  std::string weights_;
  ns3::Time detection_;
  ns3::Time restoration_;
  int action_ = 0;  // a WatchdogOptions::Action, in ns-3 a number
};

}  // namespace tokamak::sim

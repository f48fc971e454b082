// SPDX-License-Identifier: GPL-2.0-only
//
// RoceChannel is a cable between two RoceNetDevices: an ns-3 Channel over two sim::Links, one for
// each direction.
//
// Attributes take effect when the network is built (roce_network.h); Up at any time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ns3/channel.h"
#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "sim/fabric/topology/topology.h"

namespace tokamak::sim {

class RoceNetDevice;
class RoceNetwork;

class RoceChannel final : public ns3::Channel {
 public:
  static ns3::TypeId GetTypeId();

  void Attach(const ns3::Ptr<RoceNetDevice>& device);

  // Pulls the cable out, or plugs it in; frames on it are lost.
  void SetUp(bool up);
  bool IsUp() const { return up_; }

  std::size_t GetNDevices() const override;
  ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t i) const override;

  // Leaves the ends to the network.
  Topology::Cable Describe() const;

  // Sets all but Up; the second end's losses may differ, beyond attributes.
  void Assign(const Topology::Cable& cable);

 protected:
  void DoDispose() override;

 private:
  friend class RoceNetwork;

  void SetLostPackets(std::string numbers);
  std::string GetLostPackets() const { return lost_packets_; }

  ns3::DataRate rate_;
  ns3::Time delay_;
  LossOptions loss_;  // of each direction
  double loss_rate_ = 0;
  double burst_rate_ = 0;
  double burst_length_ = 1;
  double corrupt_rate_ = 0;
  std::string lost_packets_;
  std::optional<LossOptions> loss_back_;  // null: as attributes say
  bool up_ = true;

  std::array<ns3::Ptr<RoceNetDevice>, 2> ends_;
  RoceNetwork* network_ = nullptr;
  uint32_t cable_ = 0;
};

}  // namespace tokamak::sim

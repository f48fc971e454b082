// SPDX-License-Identifier: GPL-2.0-only
//
// RoceHelper builds a RoceNetwork in the style of ns-3's helpers: switches on nodes, cables
// with a device at each end, NICs at devices of hosts, captures.
#pragma once

#include <string>

#include "ns3/net-device-container.h"
#include "ns3/node-container.h"
#include "ns3/object-factory.h"
#include "ns3/trace-helper.h"
#include "sim/fabric/topology/topology.h"
#include "sim/ns3/roce_network.h"
#include "sim/ns3/roce_nic.h"

namespace tokamak::sim {

class RoceHelper final : public ns3::PcapHelperForDevice {
 public:
  // Requires PrepareSimulator().
  RoceHelper();

  // Applies to objects made from now on; the network exists already.
  void SetNetworkAttribute(const std::string& name, const ns3::AttributeValue& value);
  void SetSwitchAttribute(const std::string& name, const ns3::AttributeValue& value);
  void SetChannelAttribute(const std::string& name, const ns3::AttributeValue& value);
  void SetDeviceAttribute(const std::string& name, const ns3::AttributeValue& value);
  void SetNicAttribute(const std::string& name, const ns3::AttributeValue& value);

  // Precedes cables that end there.
  void InstallSwitch(const ns3::NodeContainer& nodes);

  // `a`'s device comes first.
  ns3::NetDeviceContainer Install(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b);

  // Makes a cable from each node to one other. Returns the devices of `nodes`.
  ns3::NetDeviceContainer Install(const ns3::NodeContainer& nodes, const ns3::Ptr<ns3::Node>& to);

  // Makes nodes and cables of a topology, generated (sim/fabric/topology/generators.h) or read
  // (sim/fabric/topology/topology_file.h). Nodes have its names (ns3::Names); its numbers override
  // attributes. Returns the hosts' devices, in interface order.
  ns3::NetDeviceContainer Install(const Topology& topology);

  // Opens a NIC at a host's device, which builds the network.
  ns3::Ptr<RoceNic> InstallNic(const ns3::Ptr<ns3::NetDevice>& device);

  const ns3::Ptr<RoceNetwork>& GetNetwork() const { return network_; }

 private:
  void EnablePcapInternal(std::string prefix, ns3::Ptr<ns3::NetDevice> device, bool promiscuous,
                          bool explicit_name) override;
  ns3::Ptr<RoceNetDevice> MakeDevice(const ns3::Ptr<ns3::Node>& node);

  ns3::ObjectFactory switches_{"tokamak::RoceSwitch"};
  ns3::ObjectFactory channels_{"tokamak::RoceChannel"};
  ns3::ObjectFactory devices_{"tokamak::RoceNetDevice"};
  ns3::ObjectFactory nics_{"tokamak::RoceNic"};
  const ns3::Ptr<RoceNetwork> network_;
};

}  // namespace tokamak::sim

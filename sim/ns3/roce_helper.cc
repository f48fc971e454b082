// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_helper.h"

#include <algorithm>
#include <vector>

#include "ns3/abort.h"
#include "ns3/ipv4-address.h"
#include "ns3/names.h"
#include "ns3/node.h"
#include "sim/ns3/roce_channel.h"
#include "sim/ns3/roce_net_device.h"
#include "sim/ns3/roce_switch.h"
#include "sim/ns3/roce_units.h"

namespace tokamak::sim {

RoceHelper::RoceHelper() : network_(ns3::CreateObject<RoceNetwork>()) {}

void RoceHelper::SetNetworkAttribute(const std::string& name, const ns3::AttributeValue& value) {
  network_->SetAttribute(name, value);
}
void RoceHelper::SetSwitchAttribute(const std::string& name, const ns3::AttributeValue& value) {
  switches_.Set(name, value);
}
void RoceHelper::SetChannelAttribute(const std::string& name, const ns3::AttributeValue& value) {
  channels_.Set(name, value);
}
void RoceHelper::SetDeviceAttribute(const std::string& name, const ns3::AttributeValue& value) {
  devices_.Set(name, value);
}
void RoceHelper::SetNicAttribute(const std::string& name, const ns3::AttributeValue& value) { nics_.Set(name, value); }

void RoceHelper::InstallSwitch(const ns3::NodeContainer& nodes) {
  for (auto node = nodes.Begin(); node != nodes.End(); ++node) (*node)->AggregateObject(switches_.Create<RoceSwitch>());
}

ns3::Ptr<RoceNetDevice> RoceHelper::MakeDevice(const ns3::Ptr<ns3::Node>& node) {
  const auto device = devices_.Create<RoceNetDevice>();
  device->SetAddress(ns3::Mac48Address::Allocate());
  node->AddDevice(device);
  network_->AddDevice(device);
  return device;
}

ns3::NetDeviceContainer RoceHelper::Install(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b) {
  const auto channel = channels_.Create<RoceChannel>();
  ns3::NetDeviceContainer devices;
  for (const auto& node : {a, b}) {
    const ns3::Ptr<RoceNetDevice> device = MakeDevice(node);
    channel->Attach(device);
    devices.Add(device);
  }
  network_->AddChannel(channel);
  return devices;
}

ns3::NetDeviceContainer RoceHelper::Install(const ns3::NodeContainer& nodes, const ns3::Ptr<ns3::Node>& to) {
  ns3::NetDeviceContainer devices;
  for (auto node = nodes.Begin(); node != nodes.End(); ++node) devices.Add(Install(*node, to).Get(0));
  return devices;
}

ns3::NetDeviceContainer RoceHelper::Install(const Topology& topology) {
  const absl::Status status = topology.Check();
  NS_ABORT_MSG_UNLESS(status.ok(), "the topology cannot be installed: " << status.message());
  // A node's devices first: they are numbered as the ports.
  std::vector<uint32_t> ports(topology.nodes());
  for (const Topology::Cable& cable : topology.cables) {
    for (const Topology::End& end : cable.ends) ports[end.node] = std::max(ports[end.node], end.port + 1);
  }
  ns3::NetDeviceContainer hosts;
  std::vector<std::vector<ns3::Ptr<RoceNetDevice>>> devices(topology.nodes());
  for (uint32_t number = 0; number < topology.nodes(); ++number) {
    const auto node = ns3::CreateObject<ns3::Node>();
    ns3::Names::Add(topology.NameOf(number), node);
    if (!topology.is_host(number)) {
      const auto one = switches_.Create<RoceSwitch>();
      one->Assign(topology.switch_at(number).options);
      node->AggregateObject(one);
    }
    for (uint32_t port = 0; port < ports[number]; ++port) {
      const auto device = MakeDevice(node);
      devices[number].push_back(device);
      if (!topology.is_host(number)) continue;
      const ns3::Ipv4Address ip = ToIpv4(topology.hosts[number].addresses[port]);
      device->SetAttribute("IpAddress", ns3::Ipv4AddressValue(ip));
      hosts.Add(device);
    }
  }
  for (const Topology::Cable& cable : topology.cables) {
    const auto channel = channels_.Create<RoceChannel>();
    channel->Assign(cable);
    for (const Topology::End& end : cable.ends) channel->Attach(devices[end.node][end.port]);
    network_->AddChannel(channel);
  }
  return hosts;
}

ns3::Ptr<RoceNic> RoceHelper::InstallNic(const ns3::Ptr<ns3::NetDevice>& device) {
  const auto port = ns3::DynamicCast<RoceNetDevice>(device);
  NS_ABORT_MSG_IF(port == nullptr, "a RoceNic needs a RoceNetDevice");
  const auto nic = nics_.Create<RoceNic>();
  nic->Open(port);
  return nic;
}

void RoceHelper::EnablePcapInternal(std::string prefix, ns3::Ptr<ns3::NetDevice> device, bool /*promiscuous*/,
                                    bool explicit_name) {
  const auto port = ns3::DynamicCast<RoceNetDevice>(device);
  if (port == nullptr) return;  // EnablePcapAll passes all kinds
  ns3::PcapHelper names;
  port->StartCapture(explicit_name ? prefix : names.GetFilenameFromDevice(prefix, device));
}

}  // namespace tokamak::sim

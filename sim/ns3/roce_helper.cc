// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_helper.h"

#include "ns3/abort.h"
#include "sim/ns3/roce_channel.h"
#include "sim/ns3/roce_net_device.h"
#include "sim/ns3/roce_switch.h"

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
  if (port == nullptr) return;  // EnablePcapAll shows all devices of all kinds
  ns3::PcapHelper names;
  port->StartCapture(explicit_name ? prefix : names.GetFilenameFromDevice(prefix, device));
}

}  // namespace tokamak::sim

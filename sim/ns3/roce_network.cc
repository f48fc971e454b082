// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ns3/abort.h"
#include "ns3/names.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"
#include "sim/fabric/topology/topology_builder.h"
#include "sim/ns3/roce_channel.h"
#include "sim/ns3/roce_net_device.h"
#include "sim/ns3/roce_switch.h"
#include "sim/ns3/roce_units.h"

namespace tokamak::sim {
namespace {

std::string NameOf(const ns3::Ptr<ns3::Node>& node) {
  const std::string name = ns3::Names::FindName(node);
  return name.empty() ? absl::StrCat("node", node->GetId()) : name;
}

}  // namespace

NS_OBJECT_ENSURE_REGISTERED(RoceNetwork);

ns3::TypeId RoceNetwork::GetTypeId() {
  using Self = RoceNetwork;
  const InterfaceOptions standard;
  static ns3::TypeId id =
      ns3::TypeId("tokamak::RoceNetwork")
          .SetParent<ns3::Object>()
          .SetGroupName("Roce")
          .AddConstructor<RoceNetwork>()
          .AddAttribute("Seed", "Of ways, marks and losses.", ns3::UintegerValue(1),
                        ns3::MakeUintegerAccessor(&Self::seed_), ns3::MakeUintegerChecker<uint64_t>())
          .AddAttribute("RerouteDelay", "From a cable's change until all switches know new ways.",
                        ns3::TimeValue(ns3::Seconds(0)), ns3::MakeTimeAccessor(&Self::reroute_delay_),
                        ns3::MakeTimeChecker(ns3::Seconds(0)))
          .AddAttribute("MaxMtu", "Bytes of payload: the largest path MTU of hosts' ports.",
                        ns3::UintegerValue(standard.max_mtu), ns3::MakeUintegerAccessor(&Self::max_mtu_),
                        ns3::MakeUintegerChecker<uint32_t>(verbs::kMinMtu, verbs::kMaxMtu))
          .AddAttribute("ReceiveBuffer", "Bytes that may wait at a host's port for a NIC with a loop of its own.",
                        ns3::UintegerValue(standard.receive_buffer), ns3::MakeUintegerAccessor(&Self::receive_buffer_),
                        ns3::MakeUintegerChecker<uint64_t>(2 * uint64_t{verbs::kMaxMtu}))
          .AddAttribute("Weights", "Of the eight priorities at hosts' ports, 1 to 1000 each, or strict.",
                        ns3::StringValue("1,1,1,1,1,1,strict,strict"), ns3::MakeStringAccessor(&Self::weights_),
                        ns3::MakeStringChecker())
          .AddAttribute("PriorityOfDscp", "64 priorities, 0 to 7, one for each DSCP; empty: its upper three bits.",
                        ns3::StringValue(""), ns3::MakeStringAccessor(&Self::priorities_), ns3::MakeStringChecker());
  return id;
}

RoceNetwork::RoceNetwork() = default;
RoceNetwork::~RoceNetwork() = default;

void RoceNetwork::AddDevice(const ns3::Ptr<RoceNetDevice>& device) {
  NS_ABORT_MSG_IF(fabric_ != nullptr, "the network is built: add devices before the first NIC is opened");
  device->network_ = this;
  devices_.push_back(device);
}

void RoceNetwork::AddChannel(const ns3::Ptr<RoceChannel>& channel) {
  NS_ABORT_MSG_IF(fabric_ != nullptr, "the network is built: add channels before the first NIC is opened");
  channels_.push_back(channel);
}

SwitchedFabric& RoceNetwork::fabric() {
  if (fabric_ == nullptr) Build();
  return *fabric_;
}

void RoceNetwork::Build() {
  auto fabric = SwitchedFabric::Build(loop_, Draw(), Options(), this);
  NS_ABORT_MSG_UNLESS(fabric.ok(), "the network cannot be built: " << fabric.status().message());
  fabric_ = *std::move(fabric);
  for (uint32_t i = 0; i < channels_.size(); ++i) {
    channels_[i]->network_ = this;
    channels_[i]->cable_ = i;
    if (!channels_[i]->IsUp()) fabric_->SetCableUp(i, false);
  }
}

Topology RoceNetwork::Draw() {
  Topology topology;
  DrawNodes(&topology);
  DrawCables(&topology);
  return topology;
}

void RoceNetwork::DrawNodes(Topology* topology) {
  for (const bool switches : {false, true}) {
    std::vector<ns3::Ptr<ns3::Node>> nodes;
    std::vector<std::vector<RoceNetDevice*>> ports;
    for (const auto& device : devices_) {
      const ns3::Ptr<ns3::Node> node = device->GetNode();
      if ((node->GetObject<RoceSwitch>() != nullptr) != switches) continue;
      const auto known = std::find(nodes.begin(), nodes.end(), node);
      const auto index = static_cast<size_t>(known - nodes.begin());
      if (known == nodes.end()) {
        nodes.push_back(node);
        ports.emplace_back();
      }
      ports[index].push_back(ns3::PeekPointer(device));
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (switches) {
        topology->switches.push_back({NameOf(nodes[i]), nodes[i]->GetObject<RoceSwitch>()->Describe()});
      } else {
        topology->hosts.push_back({NameOf(nodes[i]), {}});
        for (RoceNetDevice* device : ports[i]) {
          if (device->ip_.IsAny()) device->ip_ = ToIpv4(AddressOfInterface(static_cast<uint32_t>(interfaces_.size())));
          topology->hosts.back().addresses.push_back(ToAddress(device->ip_));
          interfaces_.push_back(device);
        }
      }
      ports_.push_back(std::move(ports[i]));
    }
  }
}

void RoceNetwork::DrawCables(Topology* topology) {
  const auto end_of = [this](const ns3::Ptr<ns3::NetDevice>& device) {
    for (uint32_t node = 0; node < ports_.size(); ++node) {
      for (uint32_t port = 0; port < ports_[node].size(); ++port) {
        if (ports_[node][port] == ns3::PeekPointer(device)) return Topology::End{node, port};
      }
    }
    NS_ABORT_MSG("a RoceChannel ends at a device that was not added to its network");
  };
  for (const auto& channel : channels_) {
    NS_ABORT_MSG_UNLESS(channel->GetNDevices() == 2, "a RoceChannel needs a device at each of its two ends");
    Topology::Cable cable = channel->Describe();
    for (size_t i = 0; i < 2; ++i) cable.ends[i] = end_of(channel->GetDevice(i));
    topology->cables.push_back(std::move(cable));
  }
}

FabricOptions RoceNetwork::Options() const {
  FabricOptions options;
  options.seed = seed_;
  options.reroute_delay = ToDuration(reroute_delay_);
  options.interfaces.max_mtu = max_mtu_;
  options.interfaces.receive_buffer = receive_buffer_;
  options.interfaces.scheduling.weights = ParseWeights(weights_);
  const std::vector<uint64_t> priorities = ParseNumbers("PriorityOfDscp", priorities_);
  if (priorities.empty()) return options;
  NS_ABORT_MSG_UNLESS(
      priorities.size() == kDscps && *std::max_element(priorities.begin(), priorities.end()) < kPriorities,
      "attribute PriorityOfDscp: give 64 priorities, each from 0 to 7");
  std::copy(priorities.begin(), priorities.end(), options.interfaces.priority_of_dscp.begin());
  return options;
}

void RoceNetwork::SetCableUp(uint32_t cable, bool up) { fabric_->SetCableUp(cable, up); }

RoceCapture::End RoceNetwork::FindEnd(uint32_t interface) const {
  if (interface >= interfaces_.size()) return {ToAddress(ns3::Ipv4Address::GetZero()), ns3::Mac48Address()};
  const RoceNetDevice& device = *interfaces_[interface];
  return {ToAddress(device.ip_), device.mac_};
}

void RoceNetwork::DoDispose() {
  devices_.clear();
  channels_.clear();
  ns3::Object::DoDispose();
}

void RoceNetwork::OnEnqueue(const Place& place, const Frame& frame, uint64_t queue_bytes) {
  At(place).enqueue_(frame, queue_bytes);
  if (observer_ != nullptr) observer_->OnEnqueue(place, frame, queue_bytes);
}

void RoceNetwork::OnDequeue(const Place& place, const Frame& frame, uint64_t queue_bytes) {
  At(place).dequeue_(frame, queue_bytes);
  if (observer_ != nullptr) observer_->OnDequeue(place, frame, queue_bytes);
}

void RoceNetwork::OnTransmit(const Place& place, const Frame& frame) {
  At(place).OnFrame(frame);
  if (observer_ != nullptr) observer_->OnTransmit(place, frame);
}

void RoceNetwork::OnReceive(const Place& place, const Frame& frame) {
  At(place).OnFrame(frame);
  if (observer_ != nullptr) observer_->OnReceive(place, frame);
}

void RoceNetwork::OnDrop(const Place& place, const Frame& frame, DropReason reason) {
  At(place).drop_(frame, reason);
  if (observer_ != nullptr) observer_->OnDrop(place, frame, reason);
}

void RoceNetwork::OnMark(const Place& place, const Frame& frame, uint64_t queue_bytes) {
  At(place).mark_(frame, queue_bytes);
  if (observer_ != nullptr) observer_->OnMark(place, frame, queue_bytes);
}

void RoceNetwork::OnPauseSent(const Place& place, uint8_t priority, bool paused) {
  At(place).pause_sent_(priority, paused);
  if (observer_ != nullptr) observer_->OnPauseSent(place, priority, paused);
}

void RoceNetwork::OnPaused(const Place& place, uint8_t priority, bool paused) {
  At(place).pause_(priority, paused);
  if (observer_ != nullptr) observer_->OnPaused(place, priority, paused);
}

void RoceNetwork::OnNotification(const Place& place, const Frame& frame) {
  At(place).cnp_(frame);
  if (observer_ != nullptr) observer_->OnNotification(place, frame);
}

void RoceNetwork::OnWatchdog(const Place& place, uint8_t priority, bool storm) {
  if (observer_ != nullptr) observer_->OnWatchdog(place, priority, storm);
}

}  // namespace tokamak::sim

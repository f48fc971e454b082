// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_net_device.h"

#include "ns3/node.h"
#include "ns3/trace-source-accessor.h"
#include "sim/ns3/roce_channel.h"
#include "sim/ns3/roce_network.h"
#include "sim/ns3/roce_nic.h"

namespace tokamak::sim {

NS_OBJECT_ENSURE_REGISTERED(RoceNetDevice);

ns3::TypeId RoceNetDevice::GetTypeId() {
  using Self = RoceNetDevice;
  static ns3::TypeId id =
      ns3::TypeId("tokamak::RoceNetDevice")
          .SetParent<ns3::NetDevice>()
          .SetGroupName("Roce")
          .AddConstructor<RoceNetDevice>()
          .AddAttribute("IpAddress", "Of a host's port; 0.0.0.0: the next one of 10.0.0.0/8.",
                        ns3::Ipv4AddressValue(ns3::Ipv4Address::GetAny()), ns3::MakeIpv4AddressAccessor(&Self::ip_),
                        ns3::MakeIpv4AddressChecker())
          .AddTraceSource("Enqueue", "A frame joins the queue of its priority; the bytes of the queue with it.",
                          ns3::MakeTraceSourceAccessor(&Self::enqueue_), "tokamak::sim::RoceNetDevice::QueueCallback")
          .AddTraceSource("Dequeue", "A frame leaves its queue for the wire; the bytes that stay.",
                          ns3::MakeTraceSourceAccessor(&Self::dequeue_), "tokamak::sim::RoceNetDevice::QueueCallback")
          .AddTraceSource("Drop", "A frame goes no further, and why.", ns3::MakeTraceSourceAccessor(&Self::drop_),
                          "tokamak::sim::RoceNetDevice::DropCallback")
          .AddTraceSource("Mark", "A frame gets its congestion mark; the bytes of the queue.",
                          ns3::MakeTraceSourceAccessor(&Self::mark_), "tokamak::sim::RoceNetDevice::QueueCallback")
          .AddTraceSource("Pause", "This port has to stop a priority, or may go on.",
                          ns3::MakeTraceSourceAccessor(&Self::pause_), "tokamak::sim::RoceNetDevice::PauseCallback")
          .AddTraceSource("PauseSent", "This port asks its neighbour to stop a priority, or to go on.",
                          ns3::MakeTraceSourceAccessor(&Self::pause_sent_),
                          "tokamak::sim::RoceNetDevice::PauseCallback")
          .AddTraceSource("Cnp", "The NIC at this port sends a congestion notification.",
                          ns3::MakeTraceSourceAccessor(&Self::cnp_), "tokamak::sim::RoceNetDevice::CnpCallback")
          .AddTraceSource("Rate", "The rate of a queue pair of the NIC has changed; 0: not limited.",
                          ns3::MakeTraceSourceAccessor(&Self::rate_), "tokamak::sim::RoceNetDevice::RateCallback");
  return id;
}

RoceNetDevice::RoceNetDevice() = default;
RoceNetDevice::~RoceNetDevice() = default;

void RoceNetDevice::StartCapture(const std::string& path) { capture_ = std::make_unique<RoceCapture>(path); }

void RoceNetDevice::OnFrame(const Frame& frame) {
  if (capture_ != nullptr) Capture(frame);
  if (nic_ != nullptr && !rate_.IsEmpty()) nic_->CheckRatesSoon();
}

void RoceNetDevice::Capture(const Frame& frame) {
  if (frame.is_pause) return capture_->WritePause(frame.pause, mac_);
  verbs::soft::Packet packet;
  frame.Unload(&packet);
  capture_->Write(packet, network_->FindEnd(frame.source), network_->FindEnd(frame.destination));
}

void RoceNetDevice::SetChannel(RoceChannel* channel) {
  channel_ = channel;
  link_change_();
}

ns3::Ptr<ns3::Channel> RoceNetDevice::GetChannel() const { return channel_; }

bool RoceNetDevice::SetMtu(uint16_t mtu) { return mtu == GetMtu(); }
uint16_t RoceNetDevice::GetMtu() const {
  return static_cast<uint16_t>(network_ != nullptr ? network_->GetMaxMtu() : verbs::kMaxMtu);
}

bool RoceNetDevice::IsLinkUp() const { return channel_ != nullptr && channel_->IsUp(); }
void RoceNetDevice::AddLinkChangeCallback(ns3::Callback<void> callback) {
  link_change_.ConnectWithoutContext(callback);
}

ns3::Ptr<ns3::Node> RoceNetDevice::GetNode() const { return node_; }
void RoceNetDevice::SetNode(ns3::Ptr<ns3::Node> node) { node_ = node; }

void RoceNetDevice::DoDispose() {
  capture_.reset();
  node_ = nullptr;
  channel_ = nullptr;
  network_ = nullptr;
  ns3::NetDevice::DoDispose();
}

}  // namespace tokamak::sim

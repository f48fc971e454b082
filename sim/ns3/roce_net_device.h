// SPDX-License-Identifier: GPL-2.0-only
//
// RoceNetDevice is a port of a host or a switch: an ns-3 NetDevice over a sim::HostInterface or a
// sim::EgressPort.
//
// It carries only RoCEv2 between software NICs, as sim::Frames: an ns3::Packet for each would cost
// more than all else. So Send refuses, and there is no IP stack. Captures: roce_capture.h.
//
// Trace sources run within their event; a frame may be read during the call only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/event_loop.h"
#include "ns3/ipv4-address.h"
#include "ns3/mac48-address.h"
#include "ns3/net-device.h"
#include "ns3/traced-callback.h"
#include "sim/fabric/link/frame.h"
#include "sim/fabric/link/observer.h"
#include "sim/ns3/roce_capture.h"

namespace tokamak::sim {

class RoceChannel;
class RoceNetwork;
class RoceNic;

class RoceNetDevice final : public ns3::NetDevice {
 public:
  using QueueCallback = void (*)(const Frame& frame, uint64_t queue_bytes);
  using DropCallback = void (*)(const Frame& frame, DropReason reason);
  using PauseCallback = void (*)(uint8_t priority, bool paused);
  using CnpCallback = void (*)(const Frame& frame);
  using RateCallback = void (*)(uint32_t queue_pair, uint64_t bits_per_second);

  static ns3::TypeId GetTypeId();
  RoceNetDevice();
  ~RoceNetDevice() override;

  // Returns the attribute's; once the network is built, the assigned one.
  ns3::Ipv4Address GetIpAddress() const { return ip_; }

  void StartCapture(const std::string& path);

  void SetChannel(RoceChannel* channel);

  // NetDevice.
  void SetIfIndex(uint32_t index) override { index_ = index; }
  uint32_t GetIfIndex() const override { return index_; }
  ns3::Ptr<ns3::Channel> GetChannel() const override;
  void SetAddress(ns3::Address address) override { mac_ = ns3::Mac48Address::ConvertFrom(address); }
  ns3::Address GetAddress() const override { return mac_; }
  bool SetMtu(uint16_t mtu) override;  // accepts only the network's
  uint16_t GetMtu() const override;    // the largest path MTU
  bool IsLinkUp() const override;
  void AddLinkChangeCallback(ns3::Callback<void> callback) override;
  bool IsBroadcast() const override { return false; }
  ns3::Address GetBroadcast() const override { return ns3::Mac48Address::GetBroadcast(); }
  bool IsMulticast() const override { return false; }
  ns3::Address GetMulticast(ns3::Ipv4Address group) const override { return ns3::Mac48Address::GetMulticast(group); }
  ns3::Address GetMulticast(ns3::Ipv6Address group) const override { return ns3::Mac48Address::GetMulticast(group); }
  bool IsBridge() const override { return false; }
  bool IsPointToPoint() const override { return true; }
  bool Send(ns3::Ptr<ns3::Packet>, const ns3::Address&, uint16_t) override { return false; }
  bool SendFrom(ns3::Ptr<ns3::Packet>, const ns3::Address&, const ns3::Address&, uint16_t) override { return false; }
  ns3::Ptr<ns3::Node> GetNode() const override;
  void SetNode(ns3::Ptr<ns3::Node> node) override;
  bool NeedsArp() const override { return false; }
  void SetReceiveCallback(ReceiveCallback) override {}
  void SetPromiscReceiveCallback(PromiscReceiveCallback) override {}
  bool SupportsSendFrom() const override { return false; }

 protected:
  void DoDispose() override;

 private:
  friend class RoceChannel;
  friend class RoceNetwork;
  friend class RoceNic;

  void NotifyLinkChange() { link_change_(); }
  void OnFrame(const Frame& frame);  // on the wire, either direction
  void Capture(const Frame& frame);

  ns3::Ptr<ns3::Node> node_;
  ns3::Ptr<RoceChannel> channel_;
  ns3::Ptr<RoceNetwork> network_;
  RoceNic* nic_ = nullptr;  // while open here
  uint32_t index_ = 0;
  ns3::Mac48Address mac_;
  ns3::Ipv4Address ip_;
  std::unique_ptr<RoceCapture> capture_;

  ns3::TracedCallback<> link_change_;
  ns3::TracedCallback<const Frame&, uint64_t> enqueue_;
  ns3::TracedCallback<const Frame&, uint64_t> dequeue_;
  ns3::TracedCallback<const Frame&, DropReason> drop_;
  ns3::TracedCallback<const Frame&, uint64_t> mark_;
  ns3::TracedCallback<uint8_t, bool> pause_;
  ns3::TracedCallback<uint8_t, bool> pause_sent_;
  ns3::TracedCallback<const Frame&> cnp_;
  ns3::TracedCallback<uint32_t, uint64_t> rate_;
};

}  // namespace tokamak::sim

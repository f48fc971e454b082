// SPDX-License-Identifier: GPL-2.0-only
//
// RoceNetwork is all RoceNetDevices, RoceChannels and RoceSwitches that belong together: an ns-3
// Object over a sim::SwitchedFabric on an Ns3Loop. A RoceHelper makes one and fills it.
//
// Built on first use, by a NIC's Open or fabric(): attributes, its parts' too, are read then, and
// nothing is added after.
//
// Numbers: hosts by first device, then switches likewise; cables as added.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ns3/node.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/ptr.h"
#include "sim/fabric/link/observer.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/ns3/ns3_loop.h"
#include "sim/ns3/roce_capture.h"

namespace tokamak::sim {

class RoceChannel;
class RoceNetDevice;

class RoceNetwork final : public ns3::Object, private Observer {
 public:
  static ns3::TypeId GetTypeId();
  RoceNetwork();
  ~RoceNetwork() override;

  // Requires the device's node, the channel's two devices.
  void AddDevice(const ns3::Ptr<RoceNetDevice>& device);
  void AddChannel(const ns3::Ptr<RoceChannel>& channel);

  // Adds to the trace sources. Must outlive the network, or be null.
  void SetObserver(Observer* observer) { observer_ = observer; }

  // A mistake in the network ends the program with a message.
  SwitchedFabric& fabric();

  // Shared with the NICs.
  base::EventLoop& loop() { return loop_; }

  uint32_t GetMaxMtu() const { return max_mtu_; }

 protected:
  void DoDispose() override;

 private:
  friend class RoceChannel;
  friend class RoceNetDevice;

  void Build();
  Topology Draw();
  void DrawNodes(Topology* topology);
  void DrawCables(Topology* topology);
  FabricOptions Options() const;
  void SetCableUp(uint32_t cable, bool up);
  RoceCapture::End FindEnd(uint32_t interface) const;

  RoceNetDevice& At(const Place& place) const { return *ports_[place.node][place.port]; }

  // Observer.
  void OnEnqueue(const Place& place, const Frame& frame, uint64_t queue_bytes) override;
  void OnDequeue(const Place& place, const Frame& frame, uint64_t queue_bytes) override;
  void OnTransmit(const Place& place, const Frame& frame) override;
  void OnReceive(const Place& place, const Frame& frame) override;
  void OnDrop(const Place& place, const Frame& frame, DropReason reason) override;
  void OnMark(const Place& place, const Frame& frame, uint64_t queue_bytes) override;
  void OnPauseSent(const Place& place, uint8_t priority, bool paused) override;
  void OnPaused(const Place& place, uint8_t priority, bool paused) override;
  void OnNotification(const Place& place, const Frame& frame) override;
  void OnWatchdog(const Place& place, uint8_t priority, bool storm) override;

  uint64_t seed_ = 1;
  ns3::Time reroute_delay_;
  uint32_t max_mtu_ = 0;
  uint64_t receive_buffer_ = 0;
  std::string weights_;
  std::string priorities_;

  Ns3Loop loop_;
  Observer* observer_ = nullptr;
  std::vector<ns3::Ptr<RoceNetDevice>> devices_;
  std::vector<ns3::Ptr<RoceChannel>> channels_;
  std::vector<std::vector<RoceNetDevice*>> ports_;  // by node and port, as in the topology
  std::vector<RoceNetDevice*> interfaces_;          // by number
  std::unique_ptr<SwitchedFabric> fabric_;
};

}  // namespace tokamak::sim

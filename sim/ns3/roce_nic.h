// SPDX-License-Identifier: GPL-2.0-only
//
// RoceNic is a software NIC (lib/verbs/soft) at a host's RoceNetDevice: real verbs, with queue
// pairs, memory and completions, in ns-3's time: the code that runs on sockets, no model.
//
// Attributes take effect in Open. A NIC's objects (queue pairs, regions, completion queues) go
// before it; both may go after Simulator::Destroy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "ns3/data-rate.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/ptr.h"
#include "sim/ns3/roce_net_device.h"
#include "sim/ns3/roce_network.h"

namespace tokamak::sim {

class RoceNic final : public ns3::Object {
 public:
  static ns3::TypeId GetTypeId();
  RoceNic();
  ~RoceNic() override;

  // Builds the network. A mistake ends the program with a message.
  void Open(const ns3::Ptr<RoceNetDevice>& device);

  // Requires Open.
  verbs::soft::SoftDevice& device() { return *nic_; }
  base::EventLoop& loop() { return network_->loop(); }

  // Reports this queue pair's rates by the device's trace source Rate from now on.
  void WatchRate(uint32_t queue_pair) { rates_[queue_pair] = 0; }

 protected:
  void DoDispose() override;

 private:
  friend class RoceNetDevice;

  verbs::soft::DeviceOptions Options() const;
  void CheckRatesSoon();
  void CheckRates();

  int congestion_ = 0;  // a CongestionControl, in ns-3 a number
  uint32_t window_packets_ = 0;
  uint32_t nic_packets_ = 0;
  uint32_t ack_every_ = 0;
  bool selective_repeat_ = false;
  uint32_t batch_packets_ = 0;
  uint8_t dscp_ = 0;
  uint64_t seed_ = 0;
  ns3::Time pause_;
  ns3::Time notification_interval_;
  ns3::DataRate minimum_rate_;
  double g_ = 0;
  ns3::Time alpha_timer_;
  ns3::Time rate_timer_;
  uint64_t byte_counter_ = 0;
  uint32_t fast_recovery_ = 0;
  ns3::DataRate additive_increase_;
  ns3::DataRate hyper_increase_;

  base::NoTrace trace_;
  ns3::Ptr<RoceNetDevice> port_;
  ns3::Ptr<RoceNetwork> network_;
  std::map<uint32_t, uint64_t> rates_;  // last reported, by queue pair
  std::unique_ptr<verbs::soft::SoftDevice> nic_;
  base::Timer check_;
};

}  // namespace tokamak::sim

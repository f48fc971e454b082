// SPDX-License-Identifier: GPL-2.0-only
//
// Hosts around one switch, as an ns-3 program builds them, with a NIC each.
#pragma once

#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "ns3/simulator.h"
#include "sim/ns3/ns3_loop.h"
#include "sim/ns3/roce_channel.h"
#include "sim/ns3/roce_helper.h"
#include "sim/ns3/roce_net_device.h"
#include "sim/ns3/roce_switch.h"
#include "tests/sim/ns3/raw_writes.h"

namespace tokamak::sim {

class StarTest : public testing::Test {
 protected:
  StarTest() {
    PrepareSimulator();
    helper_ = std::make_unique<RoceHelper>();
  }
  ~StarTest() override {
    writes_.reset();
    nics_.clear();
    helper_.reset();
    ports_ = ns3::NetDeviceContainer();
    hosts_ = switches_ = ns3::NodeContainer();
    ns3::Simulator::Destroy();
  }

  // Before it, attributes are set; after it, the network is a drawing still.
  void Draw(uint32_t hosts) {
    hosts_.Create(hosts);
    switches_.Create(1);
    helper_->InstallSwitch(switches_);
    ports_ = helper_->Install(hosts_, switches_.Get(0));
  }

  void OpenNics() {
    writes_ = std::make_unique<RawWrites>(loop());
    for (uint32_t i = 0; i < ports_.GetN(); ++i) {
      nics_.push_back(helper_->InstallNic(ports_.Get(i)));
      writes_->Add(loop(), nics_.back()->device());
    }
  }

  void RunUntilCompleted(size_t count) {
    EXPECT_TRUE(
        Ns3Loop::RunUntil([&] { return writes_->completed().size() >= count; }, loop().Now() + base::Seconds(1)))
        << writes_->completed().size() << " of " << count << " completed";
  }

  // All hosts but the first write to it at once.
  void Incast(uint32_t bytes) {
    const size_t before = writes_->completed().size();
    for (uint32_t i = 1; i < hosts_.GetN(); ++i) writes_->Write(writes_->Connect(i, 0, 1024), bytes);
    RunUntilCompleted(before + hosts_.GetN() - 1);
    EXPECT_TRUE(writes_->arrived(bytes));
  }

  base::EventLoop& loop() { return helper_->GetNetwork()->loop(); }
  ns3::Ptr<RoceNetDevice> port(uint32_t host) { return ns3::DynamicCast<RoceNetDevice>(ports_.Get(host)); }
  ns3::Ptr<RoceChannel> cable(uint32_t host) { return ns3::DynamicCast<RoceChannel>(ports_.Get(host)->GetChannel()); }
  // The switch's, at a host's cable.
  ns3::Ptr<RoceNetDevice> switch_port(uint32_t host) {
    return ns3::DynamicCast<RoceNetDevice>(cable(host)->GetDevice(1));
  }

  std::unique_ptr<RoceHelper> helper_;
  ns3::NodeContainer hosts_;
  ns3::NodeContainer switches_;
  ns3::NetDeviceContainer ports_;
  std::vector<ns3::Ptr<RoceNic>> nics_;
  std::unique_ptr<RawWrites> writes_;
};

}  // namespace tokamak::sim

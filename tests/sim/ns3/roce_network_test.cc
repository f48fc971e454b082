// SPDX-License-Identifier: GPL-2.0-only
//
// The module as an ns-3 user sees it: attributes, trace sources, cables, what is refused.
#include <map>
#include <set>
#include <string>

#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/data-rate.h"
#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/node.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"
#include "tests/sim/ns3/star_fixture.h"

namespace tokamak::sim {
namespace {

class RoceNetworkTest : public StarTest {};

TEST_F(RoceNetworkTest, ASwitchHasTheUsualDefaults) {
  const SwitchOptions ours = ns3::CreateObject<RoceSwitch>()->Describe();
  const SwitchOptions standard;
  EXPECT_EQ(ours.buffer.bytes, standard.buffer.bytes);
  EXPECT_EQ(ours.buffer.ingress_alpha, standard.buffer.ingress_alpha);
  EXPECT_EQ(ours.buffer.egress_alpha, standard.buffer.egress_alpha);
  EXPECT_EQ(ours.buffer.mtu, standard.buffer.mtu);
  EXPECT_EQ(ours.pfc.lossless, standard.pfc.lossless);
  EXPECT_EQ(ours.pfc.quanta, standard.pfc.quanta);
  EXPECT_EQ(ours.ecn.kmax, standard.ecn.kmax);
  EXPECT_EQ(ours.ecn.pmax, standard.ecn.pmax);
  EXPECT_EQ(ours.scheduling.weights, standard.scheduling.weights);
  EXPECT_EQ(ours.watchdog.detection, standard.watchdog.detection);
  EXPECT_EQ(ours.watchdog.restoration, standard.watchdog.restoration);
  EXPECT_EQ(ours.watchdog.action, standard.watchdog.action);
}

TEST_F(RoceNetworkTest, AttributesOfSwitchesArriveInTheirOptions) {
  const auto one = ns3::CreateObject<RoceSwitch>();
  one->SetAttribute("BufferBytes", ns3::UintegerValue(1 << 20));
  one->SetAttribute("LosslessPriorities", ns3::UintegerValue(2));
  one->SetAttribute("Xoff", ns3::UintegerValue(9000));
  one->SetAttribute("Xon", ns3::UintegerValue(4000));
  one->SetAttribute("PauseResponse", ns3::StringValue("250ns"));
  one->SetAttribute("EcnMinimum", ns3::UintegerValue(10'000));
  one->SetAttribute("EcnMaximum", ns3::UintegerValue(20'000));
  one->SetAttribute("Weights", ns3::StringValue("strict 2 3 4 5 6 7 8"));
  one->SetAttribute("WatchdogAction", ns3::StringValue("Forward"));
  const SwitchOptions options = one->Describe();
  EXPECT_EQ(options.buffer.bytes, 1u << 20);
  EXPECT_EQ(options.pfc.lossless, 2u);
  EXPECT_EQ(options.pfc.xoff, 9000u);
  EXPECT_EQ(options.pfc.xon, 4000u);
  EXPECT_EQ(options.pfc.response, base::Nanoseconds(250));
  EXPECT_EQ(options.ecn.kmin, 10'000u);
  EXPECT_EQ(options.ecn.kmax, 20'000u);
  EXPECT_EQ(options.scheduling.weights, (std::array<uint32_t, 8>{0, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(options.watchdog.action, WatchdogOptions::Action::kForward);
}

TEST_F(RoceNetworkTest, CheckersRefuseValuesOutOfBounds) {
  const auto one = ns3::CreateObject<RoceSwitch>();
  EXPECT_FALSE(one->SetAttributeFailSafe("PauseQuanta", ns3::UintegerValue(0)));
  EXPECT_FALSE(one->SetAttributeFailSafe("EcnProbability", ns3::DoubleValue(1.5)));
  EXPECT_FALSE(one->SetAttributeFailSafe("Mtu", ns3::UintegerValue(9000)));
  EXPECT_FALSE(ns3::CreateObject<RoceChannel>()->SetAttributeFailSafe("LossRate", ns3::DoubleValue(-0.1)));
  EXPECT_FALSE(ns3::CreateObject<RoceNic>()->SetAttributeFailSafe("Dscp", ns3::UintegerValue(64)));
}

TEST_F(RoceNetworkTest, ANetworkThatCannotBeBuiltIsReportedByName) {
  ns3::NodeContainer nodes(2);
  helper_->Install(nodes.Get(0), nodes.Get(1));
  ns3::DynamicCast<RoceNetDevice>(nodes.Get(1)->GetDevice(0))->SetAttribute("IpAddress", ns3::StringValue("10.0.0.1"));
  EXPECT_DEATH(helper_->GetNetwork()->fabric(), "10.0.0.1");
  EXPECT_DEATH(ns3::CreateObject<RoceChannel>()->SetAttribute("LostPackets", ns3::StringValue("1,x")), "LostPackets");
}

TEST_F(RoceNetworkTest, DevicesBehaveAsNs3ProgramsExpect) {
  Draw(2);
  EXPECT_EQ(port(1)->GetNode(), hosts_.Get(1));
  EXPECT_EQ(switch_port(1)->GetNode(), switches_.Get(0));
  EXPECT_EQ(port(0)->GetChannel()->GetNDevices(), 2u);
  EXPECT_NE(port(0)->GetAddress(), port(1)->GetAddress());
  EXPECT_TRUE(port(0)->IsPointToPoint());
  EXPECT_TRUE(port(0)->IsLinkUp());
  EXPECT_EQ(port(0)->GetMtu(), 4096);
  int changes = 0;
  port(0)->AddLinkChangeCallback(ns3::Callback<void>([&changes] { ++changes; }));
  OpenNics();
  EXPECT_EQ(port(1)->GetIpAddress(), ns3::Ipv4Address("10.0.0.2"));
  cable(0)->SetAttribute("Up", ns3::BooleanValue(false));
  EXPECT_FALSE(port(0)->IsLinkUp());
  EXPECT_EQ(changes, 1);
}

TEST_F(RoceNetworkTest, RatesAndDelaysAreTheChannels) {
  helper_->SetChannelAttribute("DataRate", ns3::DataRateValue(ns3::DataRate("25Gb/s")));
  helper_->SetChannelAttribute("Delay", ns3::StringValue("700ns"));
  Draw(2);
  OpenNics();
  const base::Time start = loop().Now();
  writes_->Write(writes_->Connect(0, 1), 4096);
  RunUntilCompleted(1);
  EXPECT_EQ((writes_->completed()[0] - start).picoseconds(), (2 * 4194 + 172) * 320 + 4 * 700'000);
}

// Every event at a congested port is reported, with the queue's length, and at the right device.
TEST_F(RoceNetworkTest, TraceSourcesReportQueuesMarksPausesAndRates) {
  helper_->SetSwitchAttribute("EcnMinimum", ns3::UintegerValue(20'000));
  helper_->SetSwitchAttribute("EcnMaximum", ns3::UintegerValue(60'000));
  helper_->SetSwitchAttribute("Xoff", ns3::UintegerValue(30'000));
  helper_->SetSwitchAttribute("Xon", ns3::UintegerValue(20'000));
  Draw(5);
  OpenNics();
  uint64_t enqueued = 0, dequeued = 0, most = 0, last = 0, marked = 0, least_marked = UINT64_MAX;
  switch_port(0)->TraceConnectWithoutContext("Enqueue",
                                             ns3::Callback<void, const Frame&, uint64_t>([&](const Frame&, uint64_t q) {
                                               ++enqueued;
                                               most = std::max(most, q);
                                             }));
  switch_port(0)->TraceConnectWithoutContext("Dequeue",
                                             ns3::Callback<void, const Frame&, uint64_t>([&](const Frame&, uint64_t q) {
                                               ++dequeued;
                                               last = q;
                                             }));
  switch_port(0)->TraceConnectWithoutContext(
      "Mark", ns3::Callback<void, const Frame&, uint64_t>([&](const Frame& frame, uint64_t q) {
        EXPECT_EQ(frame.ecn, verbs::soft::Ecn::kMarked);
        ++marked;
        least_marked = std::min(least_marked, q);
      }));
  std::map<bool, int> pauses, pauses_sent;
  port(1)->TraceConnectWithoutContext(
      "Pause", ns3::Callback<void, uint8_t, bool>([&](uint8_t, bool paused) { ++pauses[paused]; }));
  switch_port(1)->TraceConnectWithoutContext(
      "PauseSent", ns3::Callback<void, uint8_t, bool>([&](uint8_t, bool paused) { ++pauses_sent[paused]; }));
  int notifications = 0;
  port(0)->TraceConnectWithoutContext("Cnp", ns3::Callback<void, const Frame&>([&](const Frame&) { ++notifications; }));
  std::vector<uint64_t> rates;
  port(1)->TraceConnectWithoutContext(
      "Rate", ns3::Callback<void, uint32_t, uint64_t>([&](uint32_t, uint64_t rate) { rates.push_back(rate); }));
  const RawWrites::Flow flow = writes_->Connect(1, 0, 1024);
  nics_[1]->WatchRate(flow.queue_pair->number());
  for (int i = 0; i < 3; ++i) writes_->Write(flow, 500'000);
  Incast(500'000);
  RunUntilCompleted(7);

  EXPECT_GT(enqueued, 3000u);
  EXPECT_EQ(dequeued, enqueued);
  EXPECT_EQ(last, 0u);
  EXPECT_GT(most, 60'000u);
  EXPECT_GT(marked, 0u);
  EXPECT_GT(least_marked, 20'000u);
  EXPECT_GT(pauses_sent[true], 0);
  EXPECT_EQ(pauses[true], pauses_sent[true]);
  EXPECT_EQ(pauses[false], pauses[true]);
  EXPECT_GT(notifications, 3);
  ASSERT_FALSE(rates.empty());
  EXPECT_LT(rates[0], 100'000'000'000u);
  EXPECT_EQ(std::set<uint64_t>(rates.begin(), rates.end()).size(), rates.size()) << "told without a change";
}

int g_drops = 0;
std::string g_context;
void OnDrop(std::string context, const Frame& frame, DropReason reason) {
  ++g_drops;
  g_context = context;
  EXPECT_EQ(reason, DropReason::kLoss);
  EXPECT_EQ(frame.headers.psn, 102u);  // the first is 100
}

TEST_F(RoceNetworkTest, LostPacketsAreReportedByAPathOfNs3sConfiguration) {
  Draw(2);
  cable(0)->SetAttribute("LostPackets", ns3::StringValue("3"));
  OpenNics();
  g_drops = 0;
  ns3::Config::Connect("/NodeList/*/DeviceList/*/$tokamak::RoceNetDevice/Drop", ns3::MakeCallback(&OnDrop));
  writes_->Write(writes_->Connect(0, 1, 1024), 10'000);
  RunUntilCompleted(1);
  EXPECT_TRUE(writes_->arrived(10'000));
  EXPECT_EQ(g_drops, 1);
  EXPECT_NE(g_context.find("$tokamak::RoceNetDevice/Drop"), std::string::npos);
}

TEST_F(RoceNetworkTest, SelectiveRepeatSendsOnlyTheLostPacketAgain) {
  helper_->SetNicAttribute("SelectiveRepeat", ns3::BooleanValue(true));
  Draw(2);
  cable(0)->SetAttribute("LostPackets", ns3::StringValue("3"));
  OpenNics();
  writes_->Write(writes_->Connect(0, 1, 1024), 100'000);
  RunUntilCompleted(1);
  EXPECT_TRUE(writes_->arrived(100'000));
  EXPECT_EQ(nics_[0]->device().counters().queue_pairs.packets_retransmitted, 1u);
}

TEST_F(RoceNetworkTest, HostsMayBeJoinedDirectlyAndByMoreThanOneSwitch) {
  hosts_.Create(2);
  switches_.Create(2);
  helper_->InstallSwitch(switches_);
  ports_.Add(helper_->Install(hosts_.Get(0), switches_.Get(0)).Get(0));
  helper_->Install(switches_.Get(0), switches_.Get(1));
  ports_.Add(helper_->Install(hosts_.Get(1), switches_.Get(1)).Get(0));
  OpenNics();
  writes_->Write(writes_->Connect(0, 1), 4096);
  RunUntilCompleted(1);
  // Another switch stores the packet and its answer once more, and there is another delay each way.
  EXPECT_EQ((writes_->completed()[0] - base::Time()).picoseconds(), (3 * 4194 + 3 * 86) * 80 + 6'000'000);
}

}  // namespace
}  // namespace tokamak::sim

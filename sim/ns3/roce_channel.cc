// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_channel.h"

#include <utility>

#include "absl/strings/str_join.h"
#include "ns3/abort.h"
#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/string.h"
#include "sim/ns3/roce_net_device.h"
#include "sim/ns3/roce_network.h"
#include "sim/ns3/roce_units.h"

namespace tokamak::sim {

NS_OBJECT_ENSURE_REGISTERED(RoceChannel);

ns3::TypeId RoceChannel::GetTypeId() {
  const auto probability = [] { return ns3::MakeDoubleChecker<double>(0, 1); };
  static ns3::TypeId id =
      ns3::TypeId("tokamak::RoceChannel")
          .SetParent<ns3::Channel>()
          .SetGroupName("Roce")
          .AddConstructor<RoceChannel>()
          .AddAttribute("DataRate", "Of each direction; 1 Mb/s to 8 Tb/s.",
                        ns3::DataRateValue(ns3::DataRate("100Gb/s")), ns3::MakeDataRateAccessor(&RoceChannel::rate_),
                        ns3::MakeDataRateChecker())
          .AddAttribute("Delay", "From end to end, for the first bit.", ns3::TimeValue(ns3::MicroSeconds(1)),
                        ns3::MakeTimeAccessor(&RoceChannel::delay_), ns3::MakeTimeChecker(ns3::Seconds(0)))
          .AddAttribute("LossRate", "Probability that a packet is lost.", ns3::DoubleValue(0),
                        ns3::MakeDoubleAccessor(&RoceChannel::loss_rate_), probability())
          .AddAttribute("BurstRate", "Probability that a packet begins a burst of losses.", ns3::DoubleValue(0),
                        ns3::MakeDoubleAccessor(&RoceChannel::burst_rate_), probability())
          .AddAttribute("BurstLength", "Packets of such a burst, on average.", ns3::DoubleValue(1),
                        ns3::MakeDoubleAccessor(&RoceChannel::burst_length_), ns3::MakeDoubleChecker<double>(1))
          .AddAttribute("CorruptRate", "Probability that a packet arrives damaged.", ns3::DoubleValue(0),
                        ns3::MakeDoubleAccessor(&RoceChannel::corrupt_rate_), probability())
          .AddAttribute(
              "LostPackets", "Packets of each direction that are lost, by number, in rising order, as in \"1,17\".",
              ns3::StringValue(""), ns3::MakeStringAccessor(&RoceChannel::SetLostPackets, &RoceChannel::GetLostPackets),
              ns3::MakeStringChecker())
          .AddAttribute("Up", "Whether the cable is plugged in.", ns3::BooleanValue(true),
                        ns3::MakeBooleanAccessor(&RoceChannel::SetUp, &RoceChannel::IsUp), ns3::MakeBooleanChecker());
  return id;
}

void RoceChannel::SetLostPackets(std::string numbers) {
  loss_.nth = ParseNumbers("LostPackets", numbers);
  lost_packets_ = std::move(numbers);
}

void RoceChannel::Attach(const ns3::Ptr<RoceNetDevice>& device) {
  NS_ABORT_MSG_IF(ends_[1] != nullptr, "a RoceChannel has two ends, and both are taken");
  ends_[ends_[0] == nullptr ? 0 : 1] = device;
  device->SetChannel(this);
}

void RoceChannel::SetUp(bool up) {
  if (up == up_) return;
  up_ = up;
  if (network_ != nullptr) network_->SetCableUp(cable_, up);
  for (const auto& end : ends_) {
    if (end != nullptr) end->NotifyLinkChange();
  }
}

std::size_t RoceChannel::GetNDevices() const { return ends_[1] != nullptr ? 2 : ends_[0] != nullptr ? 1 : 0; }

ns3::Ptr<ns3::NetDevice> RoceChannel::GetDevice(std::size_t i) const { return ends_[i]; }

Topology::Cable RoceChannel::Describe() const {
  Topology::Cable cable;
  const uint64_t bits = rate_.GetBitRate();
  NS_ABORT_MSG_IF(bits < Rate::kLeast || bits > Rate::kMost,
                  "attribute DataRate of a RoceChannel: " << rate_ << " is not within 1 Mb/s and 8 Tb/s");
  cable.parameters = {Rate::BitsPerSecond(bits), ToDuration(delay_)};
  LossOptions loss = loss_;
  loss.rate = loss_rate_;
  loss.burst_rate = burst_rate_;
  loss.burst_length = burst_length_;
  loss.corrupt = corrupt_rate_;
  cable.loss = {loss, loss_back_.value_or(loss)};
  return cable;
}

void RoceChannel::Assign(const Topology::Cable& cable) {
  rate_ = ns3::DataRate(cable.parameters.rate.bits_per_second());
  delay_ = ToNs3(cable.parameters.delay);
  const LossOptions& loss = cable.loss[0];
  loss_rate_ = loss.rate;
  burst_rate_ = loss.burst_rate;
  burst_length_ = loss.burst_length;
  corrupt_rate_ = loss.corrupt;
  SetLostPackets(absl::StrJoin(loss.nth, ","));
  loss_back_ = cable.loss[1];
}

void RoceChannel::DoDispose() {
  ends_ = {};
  network_ = nullptr;
  ns3::Channel::DoDispose();
}

}  // namespace tokamak::sim

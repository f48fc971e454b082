// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_nic.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ns3/abort.h"
#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/uinteger.h"
#include "sim/ns3/enum_accessor.h"
#include "sim/ns3/roce_units.h"

namespace tokamak::sim {

using verbs::soft::CongestionControl;

NS_OBJECT_ENSURE_REGISTERED(RoceNic);

ns3::TypeId RoceNic::GetTypeId() {
  using Self = RoceNic;
  const verbs::soft::DeviceOptions standard;
  const verbs::soft::DcqcnParameters& dcqcn = standard.dcqcn;
  const auto packets = [] { return ns3::MakeUintegerChecker<uint32_t>(); };
  const auto time = [] { return ns3::MakeTimeChecker(ns3::Seconds(0)); };
  const auto rate = [](uint64_t bits) { return ns3::DataRateValue(ns3::DataRate(bits)); };
  static ns3::TypeId id =
      ns3::TypeId("tokamak::RoceNic")
          .SetParent<ns3::Object>()
          .SetGroupName("Roce")
          .AddConstructor<RoceNic>()
          .AddAttribute("Congestion", "How fast queue pairs send.",
                        ns3::EnumValue(static_cast<int>(CongestionControl::kDcqcn)), EnumAccessor(&Self::congestion_),
                        ns3::MakeEnumChecker(static_cast<int>(CongestionControl::kAdditive), "Additive",
                                             static_cast<int>(CongestionControl::kFixed), "Fixed",
                                             static_cast<int>(CongestionControl::kNone), "None",
                                             static_cast<int>(CongestionControl::kDcqcn), "Dcqcn"))
          .AddAttribute("WindowPackets", "Packets of a queue pair that may be unacknowledged; 0: by the port.",
                        ns3::UintegerValue(standard.window_packets), ns3::MakeUintegerAccessor(&Self::window_packets_),
                        packets())
          .AddAttribute("NicPackets", "The same of all queue pairs together.", ns3::UintegerValue(standard.nic_packets),
                        ns3::MakeUintegerAccessor(&Self::nic_packets_), packets())
          .AddAttribute("AckEvery", "Packets after which an acknowledgement is asked for; 0: as suits.",
                        ns3::UintegerValue(standard.ack_every), ns3::MakeUintegerAccessor(&Self::ack_every_), packets())
          .AddAttribute("SelectiveRepeat", "Whether what is lost is asked for alone, and not all behind it again.",
                        ns3::BooleanValue(standard.selective_repeat),
                        ns3::MakeBooleanAccessor(&Self::selective_repeat_), ns3::MakeBooleanChecker())
          .AddAttribute("BatchPackets", "Packets that are made before the port gets them.",
                        ns3::UintegerValue(standard.batch_packets), ns3::MakeUintegerAccessor(&Self::batch_packets_),
                        ns3::MakeUintegerChecker<uint32_t>(1))
          .AddAttribute("Dscp", "Of all packets but notifications.", ns3::UintegerValue(standard.dscp),
                        ns3::MakeUintegerAccessor(&Self::dscp_), ns3::MakeUintegerChecker<uint8_t>(0, kDscps - 1))
          .AddAttribute("Seed", "Of PSNs, queue pair numbers and keys; 0: the number of the device's node, plus 1.",
                        ns3::UintegerValue(0), ns3::MakeUintegerAccessor(&Self::seed_),
                        ns3::MakeUintegerChecker<uint64_t>())
          .AddAttribute("Pause", "What an answer may take beyond its round trip before it counts as lost.",
                        ns3::TimeValue(ToNs3(standard.pause)), ns3::MakeTimeAccessor(&Self::pause_), time())
          .AddAttribute("NotificationInterval", "A marked flow's sender is told at most once in this time.",
                        ns3::TimeValue(ToNs3(standard.notification_interval)),
                        ns3::MakeTimeAccessor(&Self::notification_interval_), time())
          .AddAttribute("DcqcnMinimumRate", "The least that a rate is cut to.", rate(dcqcn.minimum_rate),
                        ns3::MakeDataRateAccessor(&Self::minimum_rate_), ns3::MakeDataRateChecker())
          .AddAttribute("DcqcnG", "How fast alpha follows.", ns3::DoubleValue(dcqcn.g),
                        ns3::MakeDoubleAccessor(&Self::g_), ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("DcqcnAlphaTimer", "Alpha decays once in this without a notification.",
                        ns3::TimeValue(ToNs3(dcqcn.alpha_timer)), ns3::MakeTimeAccessor(&Self::alpha_timer_), time())
          .AddAttribute("DcqcnRateTimer", "The rate is raised once in this.", ns3::TimeValue(ToNs3(dcqcn.rate_timer)),
                        ns3::MakeTimeAccessor(&Self::rate_timer_), time())
          .AddAttribute("DcqcnByteCounter", "The rate is raised each time that this many bytes were sent.",
                        ns3::UintegerValue(dcqcn.byte_counter), ns3::MakeUintegerAccessor(&Self::byte_counter_),
                        ns3::MakeUintegerChecker<uint64_t>(1))
          .AddAttribute("DcqcnFastRecovery", "Rounds that go half of the way to where the rate was.",
                        ns3::UintegerValue(dcqcn.fast_recovery), ns3::MakeUintegerAccessor(&Self::fast_recovery_),
                        packets())
          .AddAttribute("DcqcnAdditiveIncrease", "Of the rate, for each round after those.",
                        rate(dcqcn.additive_increase), ns3::MakeDataRateAccessor(&Self::additive_increase_),
                        ns3::MakeDataRateChecker())
          .AddAttribute("DcqcnHyperIncrease", "The same once both timer and counter have come so far.",
                        rate(dcqcn.hyper_increase), ns3::MakeDataRateAccessor(&Self::hyper_increase_),
                        ns3::MakeDataRateChecker());
  return id;
}

RoceNic::RoceNic() = default;
RoceNic::~RoceNic() { DoDispose(); }

verbs::soft::DeviceOptions RoceNic::Options() const {
  verbs::soft::DeviceOptions options;
  options.congestion = static_cast<CongestionControl>(congestion_);
  options.window_packets = window_packets_;
  options.nic_packets = nic_packets_;
  options.ack_every = ack_every_;
  options.selective_repeat = selective_repeat_;
  options.batch_packets = batch_packets_;
  options.dscp = dscp_;
  options.seed = seed_ != 0 ? seed_ : port_->GetNode()->GetId() + 1;
  options.max_mtu = network_->GetMaxMtu();
  options.pause = ToDuration(pause_);
  options.notification_interval = ToDuration(notification_interval_);
  options.dcqcn.minimum_rate = minimum_rate_.GetBitRate();
  options.dcqcn.g = g_;
  options.dcqcn.alpha_timer = ToDuration(alpha_timer_);
  options.dcqcn.rate_timer = ToDuration(rate_timer_);
  options.dcqcn.byte_counter = byte_counter_;
  options.dcqcn.fast_recovery = fast_recovery_;
  options.dcqcn.additive_increase = additive_increase_.GetBitRate();
  options.dcqcn.hyper_increase = hyper_increase_.GetBitRate();
  return options;
}

void RoceNic::Open(const ns3::Ptr<RoceNetDevice>& device) {
  NS_ABORT_MSG_IF(nic_ != nullptr, "a RoceNic is opened once");
  port_ = device;
  network_ = device->network_;
  SwitchedFabric& fabric = network_->fabric();  // gives the device its address
  verbs::soft::DeviceOptions options = Options();
  options.address = ToAddress(device->GetIpAddress());
  options.name = absl::StrCat("soft:ns3:", options.address.ToString());
  auto nic = verbs::soft::OpenSoftDevice(network_->loop(), fabric, trace_, options);
  NS_ABORT_MSG_UNLESS(nic.ok(), "the NIC cannot be opened: " << nic.status().message());
  nic_ = *std::move(nic);
  device->nic_ = this;
}

// Later: the NIC may be sending.
void RoceNic::CheckRatesSoon() {
  if (!rates_.empty() && !check_.armed()) check_ = network_->loop().Post([this] { CheckRates(); });
}

void RoceNic::CheckRates() {
  for (auto& [queue_pair, last] : rates_) {
    const auto counters = nic_->queue_pair_counters(queue_pair);
    if (!counters.ok() || counters->rate == last) continue;
    last = counters->rate;
    port_->rate_(queue_pair, last);
  }
}

void RoceNic::DoDispose() {
  if (port_ != nullptr) port_->nic_ = nullptr;
  check_.Cancel();
  nic_.reset();
  port_ = nullptr;
  network_ = nullptr;
  ns3::Object::DoDispose();
}

}  // namespace tokamak::sim

// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_switch.h"

#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"
#include "sim/ns3/enum_accessor.h"
#include "sim/ns3/roce_units.h"

namespace tokamak::sim {

NS_OBJECT_ENSURE_REGISTERED(RoceSwitch);

ns3::TypeId RoceSwitch::GetTypeId() {
  using Self = RoceSwitch;
  const SwitchOptions standard;
  const auto bytes = [] { return ns3::MakeUintegerChecker<uint64_t>(); };
  const auto time = [] { return ns3::MakeTimeChecker(ns3::Seconds(0)); };
  const auto alpha = [] { return ns3::MakeDoubleChecker<double>(0); };
  static ns3::TypeId id =
      ns3::TypeId("tokamak::RoceSwitch")
          .SetParent<ns3::Object>()
          .SetGroupName("Roce")
          .AddConstructor<RoceSwitch>()
          .AddAttribute("BufferBytes", "Bytes of the whole memory.", ns3::UintegerValue(standard.buffer.bytes),
                        ns3::MakeUintegerAccessor(&Self::buffer_bytes_), bytes())
          .AddAttribute("BufferReserved", "Bytes that are set aside for each ingress port and priority.",
                        ns3::UintegerValue(standard.buffer.reserved), ns3::MakeUintegerAccessor(&Self::reserved_),
                        bytes())
          .AddAttribute("IngressAlpha", "Dynamic threshold at ingress, times what is free of the shared part.",
                        ns3::DoubleValue(standard.buffer.ingress_alpha), ns3::MakeDoubleAccessor(&Self::ingress_alpha_),
                        alpha())
          .AddAttribute("EgressAlpha", "The same at egress, for lossy priorities.",
                        ns3::DoubleValue(standard.buffer.egress_alpha), ns3::MakeDoubleAccessor(&Self::egress_alpha_),
                        alpha())
          .AddAttribute("Mtu", "Bytes of the largest path MTU, for the headroom.",
                        ns3::UintegerValue(standard.buffer.mtu), ns3::MakeUintegerAccessor(&Self::mtu_),
                        ns3::MakeUintegerChecker<uint32_t>(verbs::kMinMtu, verbs::kMaxMtu))
          .AddAttribute("LosslessPriorities", "One bit for each priority that has PFC; 0: none.",
                        ns3::UintegerValue(standard.pfc.lossless), ns3::MakeUintegerAccessor(&Self::lossless_),
                        ns3::MakeUintegerChecker<uint8_t>())
          .AddAttribute("Xoff", "Bytes of an ingress port and priority at which it is paused; 0: dynamic.",
                        ns3::UintegerValue(standard.pfc.xoff), ns3::MakeUintegerAccessor(&Self::xoff_), bytes())
          .AddAttribute("Xon", "Bytes at which it may go on, where Xoff is given.",
                        ns3::UintegerValue(standard.pfc.xon), ns3::MakeUintegerAccessor(&Self::xon_), bytes())
          .AddAttribute("Headroom", "Bytes of each ingress port and lossless priority; 0: computed.",
                        ns3::UintegerValue(standard.pfc.headroom), ns3::MakeUintegerAccessor(&Self::headroom_), bytes())
          .AddAttribute("PauseResponse", "How long neighbours take to obey a pause, for the headroom.",
                        ns3::TimeValue(ToNs3(standard.pfc.response)), ns3::MakeTimeAccessor(&Self::response_), time())
          .AddAttribute("PauseQuanta", "Of a pause, 512 bit times each.", ns3::UintegerValue(standard.pfc.quanta),
                        ns3::MakeUintegerAccessor(&Self::quanta_), ns3::MakeUintegerChecker<uint16_t>(1))
          .AddAttribute("EcnMinimum", "Bytes of a queue up to which nothing is marked.",
                        ns3::UintegerValue(standard.ecn.kmin), ns3::MakeUintegerAccessor(&Self::ecn_minimum_), bytes())
          .AddAttribute("EcnMaximum", "Bytes of a queue from which on all is marked; 0: no marks.",
                        ns3::UintegerValue(standard.ecn.kmax), ns3::MakeUintegerAccessor(&Self::ecn_maximum_), bytes())
          .AddAttribute("EcnProbability", "Of a mark just below EcnMaximum.", ns3::DoubleValue(standard.ecn.pmax),
                        ns3::MakeDoubleAccessor(&Self::ecn_probability_), ns3::MakeDoubleChecker<double>(0, 1))
          .AddAttribute("Weights", "Of the eight priorities, 1 to 1000 each, or strict.",
                        ns3::StringValue("1,1,1,1,1,1,strict,strict"), ns3::MakeStringAccessor(&Self::weights_),
                        ns3::MakeStringChecker())
          .AddAttribute("WatchdogDetection", "A queue paused for this long is taken to be stuck; 0: no watchdog.",
                        ns3::TimeValue(ToNs3(standard.watchdog.detection)), ns3::MakeTimeAccessor(&Self::detection_),
                        time())
          .AddAttribute("WatchdogRestoration", "Without a pause for this long it is taken to be well again.",
                        ns3::TimeValue(ToNs3(standard.watchdog.restoration)),
                        ns3::MakeTimeAccessor(&Self::restoration_), time())
          .AddAttribute("WatchdogAction", "What becomes of a stuck queue.",
                        ns3::EnumValue(static_cast<int>(WatchdogOptions::Action::kDrop)), EnumAccessor(&Self::action_),
                        ns3::MakeEnumChecker(static_cast<int>(WatchdogOptions::Action::kDrop), "Drop",
                                             static_cast<int>(WatchdogOptions::Action::kForward), "Forward"));
  return id;
}

SwitchOptions RoceSwitch::Describe() const {
  SwitchOptions options;
  options.buffer = {buffer_bytes_, reserved_, ingress_alpha_, egress_alpha_, mtu_};
  options.pfc = {lossless_, xoff_, xon_, headroom_, ToDuration(response_), quanta_};
  options.ecn = {ecn_minimum_, ecn_maximum_, ecn_probability_};
  options.scheduling.weights = ParseWeights(weights_);
  options.watchdog = {ToDuration(detection_), ToDuration(restoration_), static_cast<WatchdogOptions::Action>(action_)};
  return options;
}

void RoceSwitch::Assign(const SwitchOptions& options) {
  const auto& [bytes, reserved, ingress_alpha, egress_alpha, mtu] = options.buffer;
  buffer_bytes_ = bytes;
  reserved_ = reserved;
  ingress_alpha_ = ingress_alpha;
  egress_alpha_ = egress_alpha;
  mtu_ = mtu;
  const auto& [lossless, xoff, xon, headroom, response, quanta] = options.pfc;
  lossless_ = lossless;
  xoff_ = xoff;
  xon_ = xon;
  headroom_ = headroom;
  response_ = ToNs3(response);
  quanta_ = quanta;
  ecn_minimum_ = options.ecn.kmin;
  ecn_maximum_ = options.ecn.kmax;
  ecn_probability_ = options.ecn.pmax;
  weights_ = FormatWeights(options.scheduling.weights);
  detection_ = ToNs3(options.watchdog.detection);
  restoration_ = ToNs3(options.watchdog.restoration);
  action_ = static_cast<int>(options.watchdog.action);
}

}  // namespace tokamak::sim

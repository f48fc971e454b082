// SPDX-License-Identifier: GPL-2.0-only
//
// Conversions between ns-3's values and ours.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/time.h"
#include "lib/verbs/types.h"
#include "ns3/ipv4-address.h"
#include "ns3/nstime.h"
#include "sim/fabric/link/pause_frame.h"
#include "sim/fabric/switch/class_scheduler.h"

namespace tokamak::sim {

inline base::Duration ToDuration(const ns3::Time& time) { return base::Duration::Picoseconds(time.GetPicoSeconds()); }
inline ns3::Time ToNs3(base::Duration duration) { return ns3::PicoSeconds(duration.picoseconds()); }

verbs::Address ToAddress(const ns3::Ipv4Address& ip);
ns3::Ipv4Address ToIpv4(const verbs::Address& address);

// Parses numbers between commas or spaces. A mistake ends the program, naming `attribute`.
std::vector<uint64_t> ParseNumbers(const std::string& attribute, const std::string& text);

// Parses eight, as in "1,1,1,1,1,1,strict,strict"; "strict": kStrict.
std::array<uint32_t, kPriorities> ParseWeights(const std::string& text);
std::string FormatWeights(const std::array<uint32_t, kPriorities>& weights);

}  // namespace tokamak::sim

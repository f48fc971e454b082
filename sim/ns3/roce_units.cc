// SPDX-License-Identifier: GPL-2.0-only
#include "sim/ns3/roce_units.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ns3/abort.h"

namespace tokamak::sim {
namespace {

constexpr uint64_t kMostWeight = 1000;

}  // namespace

verbs::Address ToAddress(const ns3::Ipv4Address& ip) {
  verbs::Address address;
  address.ip[10] = address.ip[11] = 0xff;
  ip.Serialize(&address.ip[12]);
  return address;
}

ns3::Ipv4Address ToIpv4(const verbs::Address& address) { return ns3::Ipv4Address::Deserialize(&address.ip[12]); }

std::vector<uint64_t> ParseNumbers(const std::string& attribute, const std::string& text) {
  std::vector<uint64_t> numbers;
  for (const auto piece : absl::StrSplit(text, absl::ByAnyChar(", "), absl::SkipEmpty())) {
    uint64_t number = 0;
    NS_ABORT_MSG_UNLESS(absl::SimpleAtoi(piece, &number),
                        "attribute " << attribute << ": '" << std::string(piece) << "' is not a number");
    numbers.push_back(number);
  }
  return numbers;
}

std::array<uint32_t, kPriorities> ParseWeights(const std::string& text) {
  const std::vector<uint64_t> numbers = ParseNumbers("Weights", absl::StrReplaceAll(text, {{"strict", "0"}}));
  NS_ABORT_MSG_UNLESS(numbers.size() == kPriorities,
                      "attribute Weights: give eight, one for each priority, not " << numbers.size());
  std::array<uint32_t, kPriorities> weights{};
  for (size_t i = 0; i < kPriorities; ++i) {
    NS_ABORT_MSG_IF(numbers[i] > kMostWeight, "attribute Weights: " << numbers[i] << " is more than " << kMostWeight);
    weights[i] = static_cast<uint32_t>(numbers[i]);
  }
  return weights;
}

std::string FormatWeights(const std::array<uint32_t, kPriorities>& weights) {
  return absl::StrJoin(weights, ",", [](std::string* text, uint32_t weight) {
    absl::StrAppend(text, weight == SchedulingOptions::kStrict ? "strict" : absl::StrCat(weight));
  });
}

}  // namespace tokamak::sim

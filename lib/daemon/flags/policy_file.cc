#include "lib/daemon/flags/policy_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "nlohmann/json.hpp"

namespace tokamak::daemon {
namespace {

using nlohmann::json;
using transport::kMaxPolicySteps;
using transport::kMeasuredProtocols;
using transport::Policy;
using transport::Protocol;
using transport::SizeTimes;

constexpr int kVersion = 1;

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::StatusOr<json> ParseJson(absl::string_view text) {
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::parse_error& error) {
    return Wrong(absl::StrCat("no JSON: byte ", error.byte, " is not what must follow"));
  } catch (const json::exception&) {  // such as a number beyond double
    return Wrong("no JSON: a number is out of range");
  }
}

// Returns "" if missing; kInvalidArgument: no short text.
absl::StatusOr<std::string> TextIn(const json& object, const char* key, absl::string_view place) {
  if (!object.contains(key)) return std::string();
  const json& value = object[key];
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kMaxPolicyText) {
    return Wrong(absl::StrCat(place, ".", key, ": a text of at most ", kMaxPolicyText, " bytes"));
  }
  return value.get<std::string>();
}

absl::StatusOr<uint64_t> SizeOf(const json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_string() && value.get_ref<const std::string&>().size() <= kMaxPolicyText) {
    return base::ParseSize(value.get_ref<const std::string&>());
  }
  return Wrong("give bytes, or a text such as \"40KiB\"");
}

absl::StatusOr<Policy::Step> StepOf(const json& value, bool last) {
  if (!value.is_object()) return Wrong("no object such as {\"up_to\": 40960, \"protocol\": \"eager\"}");
  for (const auto& member : value.items()) {
    if (member.key() != "up_to" && member.key() != "protocol") return Wrong("has more than up_to and protocol");
  }
  Policy::Step step{UINT64_MAX, Protocol::kAuto};
  const auto name = TextIn(value, "protocol", "step");
  if (!name.ok() || name->empty()) return Wrong("protocol: give eager, read or write");
  const auto protocol = transport::ParseProtocol(*name);
  if (!protocol.ok()) return protocol.status();
  step.protocol = *protocol;
  if (!value.contains("up_to")) {
    return last ? absl::StatusOr<Policy::Step>(step) : Wrong("up_to: only the last step has none");
  }
  const auto size = SizeOf(value["up_to"]);
  if (!size.ok()) return Wrong(absl::StrCat("up_to: ", size.status().message()));
  step.size_at_most = *size;
  return step;
}

absl::StatusOr<Policy> TableOf(const json& table) {
  if (!table.is_array()) return Wrong("table: no array of steps");
  std::vector<Policy::Step> steps;
  for (size_t i = 0; i < std::min(table.size(), kMaxPolicySteps + 1); ++i) {
    const auto step = StepOf(table[i], i + 1 == table.size());
    if (!step.ok()) return Wrong(absl::StrCat("table, step ", i + 1, ": ", step.status().message()));
    steps.push_back(*step);
  }
  auto policy = Policy::FromSteps(std::move(steps));
  if (!policy.ok()) return Wrong(absl::StrCat("table: ", policy.status().message()));
  return policy;
}

absl::StatusOr<LinkEnd> EndOf(const json& measured, const char* key) {
  LinkEnd end;
  if (!measured.contains(key)) return end;
  const std::string place = absl::StrCat("measured.", key);
  if (!measured[key].is_object()) return Wrong(absl::StrCat(place, ": no object"));
  auto node = TextIn(measured[key], "node", place);
  if (!node.ok()) return node.status();
  auto device = TextIn(measured[key], "device", place);
  if (!device.ok()) return device.status();
  return LinkEnd{*std::move(node), *std::move(device)};
}

absl::StatusOr<PolicyMeasurement> MeasurementOf(const json& measured) {
  if (!measured.is_object()) return Wrong("measured: no object");
  PolicyMeasurement read;
  auto date = TextIn(measured, "date", "measured");
  if (!date.ok()) return date.status();
  read.date = *std::move(date);
  auto puller = EndOf(measured, "puller");
  if (!puller.ok()) return puller.status();
  read.puller = *std::move(puller);
  auto holder = EndOf(measured, "holder");
  if (!holder.ok()) return holder.status();
  read.holder = *std::move(holder);
  return read;
}

double Microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

double Quantile(const std::vector<double>& sorted, double part) {
  return sorted[std::min(sorted.size() - 1, static_cast<size_t>(part * static_cast<double>(sorted.size())))];
}

json SizeToJson(const SizeTimes& one) {
  json size = {{"bytes", one.size}};
  for (size_t p = 0; p < kMeasuredProtocols.size(); ++p) {
    if (one.seconds[p].empty()) continue;
    std::vector<double> sorted = one.seconds[p];
    std::sort(sorted.begin(), sorted.end());
    size[transport::ToString(kMeasuredProtocols[p])] = {{"median_us", Microseconds(transport::Median(sorted))},
                                                        {"p10_us", Microseconds(Quantile(sorted, 0.1))},
                                                        {"p90_us", Microseconds(Quantile(sorted, 0.9))},
                                                        {"samples", sorted.size()}};
  }
  return size;
}

json MeasurementToJson(const PolicyMeasurement& measured) {
  const auto end = [](const LinkEnd& e) { return json{{"node", e.node}, {"device", e.device}}; };
  json sizes = json::array(), crossovers = json::array();
  for (const SizeTimes& one : measured.times) sizes.push_back(SizeToJson(one));
  for (const transport::Crossover& one : measured.crossovers) {
    crossovers.push_back({{"below", transport::ToString(one.below)},
                          {"above", transport::ToString(one.above)},
                          {"bytes", one.size},
                          {"least_bytes", one.least},
                          {"most_bytes", one.most},
                          {"loss", std::round(one.loss * 1e4) / 1e4}});
  }
  return {{"date", measured.date},          {"puller", end(measured.puller)},
          {"holder", end(measured.holder)}, {"seconds", std::round(measured.seconds * 10) / 10},
          {"sizes", std::move(sizes)},      {"crossovers", std::move(crossovers)}};
}

}  // namespace

absl::StatusOr<PolicyFile> ParsePolicyFile(absl::string_view text) {
  if (text.size() > kMaxPolicyFile) {
    return Wrong(absl::StrCat(text.size(), " bytes, a policy has at most ", kMaxPolicyFile));
  }
  const auto parsed = ParseJson(text);
  if (!parsed.ok()) return parsed.status();
  const json& file = *parsed;
  if (!file.is_object() || !file.contains("tokamak_policy")) {
    return Wrong("no policy: \"tokamak_policy\" is missing; tok tune writes one");
  }
  if (file["tokamak_policy"] != kVersion) {
    return Wrong(absl::StrCat("tokamak_policy: this program reads version ", kVersion));
  }
  for (const auto& member : file.items()) {
    if (member.key() != "tokamak_policy" && member.key() != "table" && member.key() != "measured") {
      return Wrong("has more than tokamak_policy, table and measured");
    }
  }
  if (!file.contains("table")) return Wrong("table: missing");
  PolicyFile read;
  auto policy = TableOf(file["table"]);
  if (!policy.ok()) return policy.status();
  read.policy = *std::move(policy);
  if (!file.contains("measured")) return read;
  auto measured = MeasurementOf(file["measured"]);
  if (!measured.ok()) return measured.status();
  read.measured = *std::move(measured);
  return read;
}

std::string FormatPolicyFile(const PolicyFile& file) {
  json table = json::array();
  for (const Policy::Step& step : file.policy.steps()) {
    json one = {{"protocol", transport::ToString(step.protocol)}};
    if (step.size_at_most != UINT64_MAX) one["up_to"] = step.size_at_most;
    table.push_back(std::move(one));
  }
  json all = {{"tokamak_policy", kVersion}, {"table", std::move(table)}};
  if (file.measured.has_value()) all["measured"] = MeasurementToJson(*file.measured);
  return all.dump(2, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace) + "\n";
}

}  // namespace tokamak::daemon

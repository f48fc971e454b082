#include "lib/verbs/soft/congestion/congestion.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/check.h"
#include "lib/base/units.h"

namespace tokamak::verbs::soft {
namespace {

struct Algorithm {
  CongestionControl control;
  const char* name;
  std::unique_ptr<Congestion> (*make)(const CongestionPath& path);
};

constexpr Algorithm kAlgorithms[] = {
    {CongestionControl::kAdditive, "additive",
     [](const CongestionPath& path) { return MakeAdditiveWindow(path.packets, path.pause); }},
    {CongestionControl::kFixed, "fixed", [](const CongestionPath& path) { return MakeFixedWindow(path.packets); }},
    {CongestionControl::kNone, "none", [](const CongestionPath&) { return MakeNoCongestionControl(); }},
    {CongestionControl::kDcqcn, "dcqcn",
     [](const CongestionPath& path) -> std::unique_ptr<Congestion> {
       return MakeDcqcn(path.dcqcn, path.packets, path.line_rate);
     }},
};

const Algorithm& Find(CongestionControl control) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.control == control) return algorithm;
  }
  CHECK(false) << "no congestion control " << static_cast<int>(control);
}

}  // namespace

std::unique_ptr<Congestion> MakeCongestion(CongestionControl control, const CongestionPath& path) {
  return Find(control).make(path);
}

absl::StatusOr<CongestionControl> ParseCongestionControl(absl::string_view name) {
  std::string names;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (name == algorithm.name) return algorithm.control;
    absl::StrAppend(&names, names.empty() ? "" : ", ", algorithm.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("no congestion control \"", name, "\"; there are ", names));
}

absl::StatusOr<CongestionChoice> CongestionChoice::Parse(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  const auto control = ParseCongestionControl(parts.first);
  if (!control.ok()) return control.status();
  CongestionChoice choice;
  choice.control = *control;
  const bool has_rate = parts.first.size() != text.size();
  if (choice.control != CongestionControl::kDcqcn) {
    if (!has_rate) return choice;
    return absl::InvalidArgumentError(absl::StrCat("only dcqcn has a rate; write just ", parts.first));
  }
  if (!has_rate) return absl::InvalidArgumentError("dcqcn needs the rate of this host's link, as in dcqcn:10Gb/s");
  const auto rate = base::ParseRate(parts.second);
  if (!rate.ok()) return rate.status();
  if (*rate < kLeastLineRate) {
    return absl::InvalidArgumentError(absl::StrCat("a link of ", parts.second, ": give at least 1Mb/s"));
  }
  choice.line_rate = *rate;
  return choice;
}

const char* ToString(CongestionControl control) { return Find(control).name; }

}  // namespace tokamak::verbs::soft

#include "lib/verbs/soft/congestion.h"

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

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
  LOG(FATAL) << "no congestion control " << static_cast<int>(control);
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

const char* ToString(CongestionControl control) { return Find(control).name; }

}  // namespace tokamak::verbs::soft

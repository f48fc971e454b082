#include "lib/cli/doctor/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/units.h"
#include "lib/cli/common/output.h"
#include "nlohmann/json.hpp"

namespace tokamak::cli::doctor {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GidLine, index, gid, type, netdev, chosen, remark)

namespace {

constexpr size_t kTextWidth = 88;  // of the column behind verdict and check
constexpr char kIndent[] = "                          ";

// Words put into lines of at most `width`; a longer word has a line to itself.
std::vector<std::string> Wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines(1);
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    absl::StrAppend(&lines.back(), lines.back().empty() ? "" : " ", word);
  }
  return lines;
}

std::string FormatFinding(const Finding& finding) {
  const std::string gap = absl::StrCat("\n", kIndent);
  std::string text = absl::StrFormat("  %-9s%-15s%s\n", ToString(finding.verdict), finding.check,
                                     absl::StrJoin(Wrap(finding.seen, kTextWidth), gap));
  if (finding.advice.empty()) return text;
  const std::string deeper = absl::StrCat(gap, "   ");
  absl::StrAppend(&text, kIndent, "-> ", absl::StrJoin(Wrap(finding.advice, kTextWidth - 3), deeper), "\n");
  return text;
}

std::string FormatGids(const std::vector<GidLine>& gids) {
  std::vector<std::vector<std::string>> rows;
  for (const GidLine& gid : gids) {
    rows.push_back(
        {kIndent, gid.chosen ? "*" : " ", absl::StrCat(gid.index), gid.type, gid.gid, gid.netdev, gid.remark});
  }
  return FormatTable(rows, {2});
}

json ToJson(const std::vector<Finding>& findings) {
  json all = json::array();
  for (const Finding& finding : findings) {
    json one = {{"check", finding.check},
                {"verdict", finding.verdict == Verdict::kNotApplicable ? "not applicable" : ToString(finding.verdict)},
                {"seen", finding.seen},
                {"advice", finding.advice}};
    for (const auto& [name, value] : finding.numbers) one["numbers"][name] = value;
    all.push_back(std::move(one));
  }
  return all;
}

// All that were named where all work, else the first that works; empty: none.
std::string DevicesForTokd(const Report& report) {
  if (!report.named) {
    const DeviceReport* working = WorkingDevice(report);
    return working == nullptr ? "" : working->name;
  }
  std::vector<std::string> names;
  for (const DeviceReport& device : report.devices) {
    if (AnyFailed(device.findings)) return "";
    names.push_back(device.name);
  }
  return absl::StrJoin(names, ",");
}

}  // namespace

const char* ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kFailed:
      return "failed";
    case Verdict::kNotApplicable:
      return "-";
  }
  return "?";
}

bool AnyFailed(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.verdict == Verdict::kFailed; });
}

const DeviceReport* WorkingDevice(const Report& report) {
  const auto working = std::find_if(report.devices.begin(), report.devices.end(),
                                    [](const DeviceReport& device) { return !AnyFailed(device.findings); });
  return working == report.devices.end() ? nullptr : &*working;
}

bool Works(const Report& report) {
  return !AnyFailed(report.machine) && !DevicesForTokd(report).empty() && !AnyFailed(report.with_peer);
}

std::string FlagsForTokd(const Report& report) {
  const std::string devices = DevicesForTokd(report);
  if (devices.empty()) return "";
  return absl::StrCat("--device ", devices, report.by_tcp ? " --cm tcp" : "", report.fabric.empty() ? "" : " ",
                      report.fabric);
}

std::string FormatReport(const Report& report) {
  std::string text = absl::StrCat("this machine, for a store of ", base::FormatSize(report.store), "\n");
  for (const Finding& finding : report.machine) absl::StrAppend(&text, FormatFinding(finding));
  for (const DeviceReport& device : report.devices) {
    absl::StrAppend(&text, device.name, device.about.empty() ? "" : absl::StrCat(", ", device.about), "\n");
    for (const Finding& finding : device.findings) {
      absl::StrAppend(&text, FormatFinding(finding));
      if (finding.check == "gid") absl::StrAppend(&text, FormatGids(device.gids));
    }
  }
  const DeviceReport* device = WorkingDevice(report);
  if (!report.peer.empty()) {
    absl::StrAppend(&text, "with ", report.peer, device == nullptr ? "" : absl::StrCat(", from ", device->name), "\n");
    for (const Finding& finding : report.with_peer) absl::StrAppend(&text, FormatFinding(finding));
  }
  if (Works(report)) {
    absl::StrAppend(&text, "it works: tokd ", FlagsForTokd(report), "\n");
  } else if (AnyFailed(report.with_peer) && !DevicesForTokd(report).empty() && !AnyFailed(report.machine)) {
    absl::StrAppend(&text, "it does not work with ", report.peer, ": see what failed\n");
  } else {
    absl::StrAppend(&text, "it does not work: see what failed\n");
  }
  return text;
}

std::string ReportToJson(const Report& report) {
  json devices = json::array();
  for (const DeviceReport& device : report.devices) {
    devices.push_back({{"name", device.name},
                       {"about", device.about},
                       {"works", !AnyFailed(device.findings)},
                       {"findings", ToJson(device.findings)},
                       {"gids", device.gids}});
  }
  const std::string usable = DevicesForTokd(report);
  return json({{"works", Works(report)},
               {"device", usable.empty() ? json() : json(usable)},
               {"cm", report.by_tcp ? "tcp" : "rdma"},
               {"store_bytes", report.store},
               {"machine", ToJson(report.machine)},
               {"devices", std::move(devices)},
               {"peer", report.peer},
               {"with_peer", ToJson(report.with_peer)}})
             .dump(2, ' ', false, json::error_handler_t::replace) +
         "\n";
}

}  // namespace tokamak::cli::doctor

#include "tests/bench/cluster/report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "lib/base/units.h"
#include "nlohmann/json.hpp"

namespace tokamak::bench {

namespace {

using nlohmann::ordered_json;

absl::Status WriteFile(const std::string& path, const std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.good()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("could not write ", path, ": name a file in a folder of yours"));
}

std::string Seconds(double seconds) {
  return base::FormatDuration(base::Duration::Picoseconds(static_cast<int64_t>(seconds * 1e12)));
}

std::string Rate(double bytes_per_second) {
  return absl::StrCat(base::FormatSize(static_cast<uint64_t>(bytes_per_second)), "/s");
}

// Half of the interval, as a part of the median.
std::string Precision(const CaseResult& result) {
  if (!result.interval.has_value()) return "unknown";
  return absl::StrFormat("%.1f %%", 50 * (result.interval->high - result.interval->low) / result.p50);
}

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// Enough digits for the same double.
std::string Number(double value) { return absl::StrFormat("%.17g", value); }

constexpr char kRow[] = "%-12s %10s %-7s %-10s %6s %10s %10s %10s %8s %12s %12s %12s  %s\n";

}  // namespace

Report::Report(RunInfo run, std::vector<Contender> contenders, std::vector<CaseResult> results)
    : run_(std::move(run)), contenders_(std::move(contenders)), results_(std::move(results)) {
  std::sort(results_.begin(), results_.end(), [](const CaseResult& a, const CaseResult& b) {
    return std::tie(a.what.pattern, a.what.size, a.what.contender) <
           std::tie(b.what.pattern, b.what.size, b.what.contender);
  });
}

std::string Report::Table() const {
  std::string table = absl::StrCat(run_.ranks, " ranks on ", run_.hosts, run_.hosts == 1 ? " host, " : " hosts, ",
                                   run_.machine, ", ", run_.kernel, "\n", run_.command, "\n\n");
  absl::StrAppendFormat(&table, kRow, "pattern", "size", "by", "variant", "times", "p10", "p50", "p90", "+/-", "all",
                        "least rank", "mean rank", "ended by");
  for (const CaseResult& result : results_) {
    const Contender& contender = contenders_[result.what.contender];
    absl::StrAppendFormat(&table, kRow, ToString(result.what.pattern), base::FormatSize(result.what.size),
                          contender.protocol, contender.variant, absl::StrCat(result.repetitions), Seconds(result.p10),
                          Seconds(result.p50), Seconds(result.p90), Precision(result), Rate(result.bytes_per_second),
                          Rate(result.least_share), Rate(result.mean_share), ToString(result.stop));
  }
  return table;
}

std::string Report::Csv() const {
  std::string csv =
      "pattern,size_bytes,protocol,variant,ranks,repetitions,ended_by,p10_seconds,p50_seconds,p90_seconds,"
      "interval_low_seconds,interval_high_seconds,bytes,bytes_per_second,least_rank_bytes_per_second,"
      "mean_rank_bytes_per_second,least_source_share,machine,kernel,command\r\n";
  for (const CaseResult& result : results_) {
    const Contender& contender = contenders_[result.what.contender];
    const std::vector<std::string> fields = {ToString(result.what.pattern),
                                             absl::StrCat(result.what.size),
                                             contender.protocol,
                                             contender.variant,
                                             absl::StrCat(run_.ranks),
                                             absl::StrCat(result.repetitions),
                                             ToString(result.stop),
                                             Number(result.p10),
                                             Number(result.p50),
                                             Number(result.p90),
                                             result.interval.has_value() ? Number(result.interval->low) : "",
                                             result.interval.has_value() ? Number(result.interval->high) : "",
                                             absl::StrCat(result.bytes),
                                             Number(result.bytes_per_second),
                                             Number(result.least_share),
                                             Number(result.mean_share),
                                             Number(result.least_source),
                                             Quoted(run_.machine),
                                             Quoted(run_.kernel),
                                             Quoted(run_.command)};
    absl::StrAppend(&csv, absl::StrJoin(fields, ","), "\r\n");
  }
  return csv;
}

std::string Report::Json(const Settings& settings) const {
  ordered_json results = ordered_json::array();
  for (const CaseResult& result : results_) {
    const Contender& contender = contenders_[result.what.contender];
    ordered_json interval;  // null: too few repetitions
    if (result.interval.has_value()) interval = {result.interval->low, result.interval->high};
    results.push_back({{"pattern", ToString(result.what.pattern)},
                       {"size_bytes", result.what.size},
                       {"protocol", contender.protocol},
                       {"variant", contender.variant},
                       {"repetitions", result.repetitions},
                       {"ended_by", ToString(result.stop)},
                       {"p10_seconds", result.p10},
                       {"p50_seconds", result.p50},
                       {"p90_seconds", result.p90},
                       {"interval_seconds", interval},
                       {"bytes", result.bytes},
                       {"bytes_per_second", result.bytes_per_second},
                       {"least_rank_bytes_per_second", result.least_share},
                       {"mean_rank_bytes_per_second", result.mean_share},
                       {"least_source_share", result.least_source}});
  }
  const ordered_json all = {{"run",
                             {{"ranks", run_.ranks},
                              {"hosts", run_.hosts},
                              {"machine", run_.machine},
                              {"kernel", run_.kernel},
                              {"command", run_.command}}},
                            {"settings",
                             {{"devices", settings.devices},
                              {"registration", settings.registration},
                              {"detection", settings.detection},
                              {"engines", settings.engines},
                              {"bulk_queue_pairs", settings.bulk_queue_pairs},
                              {"chunk_size_bytes", settings.chunk_size},
                              {"depth", settings.chunks_in_flight},
                              {"congestion", settings.congestion},
                              {"costs", settings.costs},
                              {"rate", settings.rate},
                              {"policy", settings.policy},
                              {"keep", settings.keep},
                              {"warm_up", settings.warm_up},
                              {"precision", settings.stop.precision},
                              {"seed", settings.seed}}},
                            {"results", results}};
  return absl::StrCat(all.dump(2), "\n");
}

absl::Status Report::Tell(std::ostream& out, const Settings& settings) const {
  out << Table() << std::flush;
  absl::Status status = WriteFile(settings.csv, Csv());
  if (status.ok()) status = WriteFile(settings.json, Json(settings));
  return status;
}

std::string Report::Line(const CaseResult& result, const Contender& contender) {
  return absl::StrCat(ToString(result.what.pattern), " ", base::FormatSize(result.what.size), " ", contender.protocol,
                      " ", contender.variant, ": ", Seconds(result.p50), " (", result.repetitions, " times, +/- ",
                      Precision(result), ")");
}

std::string DescribeMachine() {
  std::string model = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (absl::StartsWith(line, "model name") && colon != std::string::npos) {
      model = line.substr(colon + 2);
      break;
    }
  }
  const uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return absl::StrCat(sysconf(_SC_NPROCESSORS_ONLN), " x ", model, ", ", base::FormatSize(memory));
}

std::string DescribeKernel() {
  utsname name{};
  if (uname(&name) != 0) return "unknown kernel";
  return absl::StrCat(name.sysname, " ", name.release);
}

}  // namespace tokamak::bench

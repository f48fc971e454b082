// How long a node takes to pull an object from another process, beside a TCP stream, a Redis GET
// and memcpy in the same run.
//
//   bazel run -c opt //tests/bench:pull -- --json
//
// This process is one node, a tokd beside it the other (node_pair.h). Contenders take turns within
// each size, so that a machine that slows down slows all of them down, in an order that is drawn
// anew for each round: what one leaves in caches must not always favour the same other.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/log.h"
#include "lib/base/phase_log.h"
#include "lib/base/random.h"
#include "lib/base/units.h"
#include "lib/cli/common/as_absl.h"
#include "nlohmann/json.hpp"
#include "tests/bench/baselines.h"
#include "tests/bench/cluster/statistics.h"
#include "tests/bench/node_pair.h"
#include "tests/bench/processor_time.h"
#include "tests/bench/register_memory.h"
#include "tests/bench/summary.h"
#include "tokamak/client.h"

namespace tokamak::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

// In the order in which they take turns.
const std::vector<std::string> kContenders = {"eager", "read", "write", "auto", "tcp", "redis", "memcpy", "register"};

// Contenders that pull.
const std::map<std::string, transport::Protocol> kProtocols = {{"eager", transport::Protocol::kEager},
                                                               {"read", transport::Protocol::kRead},
                                                               {"write", transport::Protocol::kWrite},
                                                               {"auto", transport::Protocol::kAuto}};

struct Settings {
  std::vector<uint64_t> sizes = {1,         64,      1 << 10, 4 << 10,  16 << 10, 64 << 10,
                                 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20};
  uint64_t bytes_per_size = 512 << 20;  // how often each contender fetches depends on the size
  uint32_t most_rounds = 500;
  uint32_t least_rounds = 7;
  std::vector<std::string> contenders = {"eager", "read", "write", "auto", "tcp", "redis", "memcpy"};
  std::vector<std::string> devices;
  std::string memory = "2GiB";
  uint32_t engines = 1;
  std::string detection = "event";
  std::string holder_detection;  // the same, unless given
  std::string registration = "arena";
  std::string policy;  // as tokd --policy; empty: the built-in one
  bool json = false;
  std::string trace;  // a file; empty: none
};

class Pull final : public Contender {
 public:
  Pull(NodePair& pair, transport::Protocol protocol) : pair_(pair), protocol_(protocol) {}

  std::string name() const override { return absl::StrCat("pull ", transport::ToString(protocol_)); }

  absl::Status Prepare(uint64_t size) override {
    const base::ObjectId old = id_;
    id_ = base::ObjectId::FromName(absl::StrCat(name(), size));
    const absl::Status status = pair_.AskOther([&](Client& client) -> absl::Status {
      if (held_) {
        if (absl::Status gone = cli::AsAbsl(client.Delete(old)); !gone.ok()) return gone;
      }
      auto buffer = cli::AsAbsl(client.Create(id_, size));
      if (!buffer.ok()) return buffer.status();
      std::fill(buffer->data().begin(), buffer->data().end(), 0x5a);
      return cli::AsAbsl(buffer->Seal());
    });
    if (!status.ok()) return status;
    held_ = true;
    return Fetch().status();  // the first makes the connection
  }

  absl::StatusOr<double> Fetch() override {
    node::GetOptions options;
    options.timeout = base::Seconds(60);
    options.protocol = protocol_;
    bool over = false;
    absl::Status status;
    double seconds = 0;
    const Clock::time_point begin = Clock::now();
    const auto get = pair_.node().Get({&id_, 1}, options, pair_.who(), [&](absl::Span<const node::GetResult> results) {
      seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      status = results.front().status;
      over = true;
    });
    pair_.loop().RunUntil([&] { return over; }, pair_.loop().Now() + base::Seconds(61));
    if (!over) return absl::DeadlineExceededError("a pull did not end");
    if (!status.ok()) return status;
    // Give the copy up, so that the next one pulls again, and let the directory hear of it.
    if (absl::Status release = pair_.node().store().Release(id_, pair_.who()); !release.ok()) return release;
    if (absl::Status gone = pair_.node().store().Delete(id_); !gone.ok()) return gone;
    pair_.loop().RunUntil([&] { return pair_.node().membership().behind() == 0; },
                          pair_.loop().Now() + base::Seconds(5));
    return seconds;
  }

 private:
  NodePair& pair_;
  const transport::Protocol protocol_;
  base::ObjectId id_;
  bool held_ = false;
};

// Processor time of the two nodes, in seconds: this process, and the other tokd.
struct ProcessorTime {
  double here = 0;
  double there = 0;
};

// The hybrid beside the protocol that is the fastest of those that were measured, by its median:
// how many times as long, round by round, in which both came one after the other.
struct AgainstBest {
  std::string best;
  double ratio = 0;   // the median
  Interval interval;  // of 95 %
};

struct Row {
  uint64_t size;
  std::string name;
  Summary seconds;
  base::PhaseLog::Totals phases;            // of pulls, with --trace
  std::optional<ProcessorTime> processor;   // of pulls: for each object, until its copy is given up
  std::optional<AgainstBest> against_best;  // of the hybrid
};

double Mean(const Row& row, size_t phase) {  // in seconds
  return static_cast<double>(row.phases.phases[phase].nanoseconds()) / 1e9 / static_cast<double>(row.phases.activities);
}

void Print(const std::vector<Row>& rows, bool as_json) {
  json all = json::array();
  for (const Row& row : rows) {
    const double rate = static_cast<double>(row.size) / row.seconds.median;
    all.push_back({{"size", row.size},
                   {"contender", row.name},
                   {"rounds", row.seconds.count},
                   {"p10_seconds", row.seconds.p10},
                   {"p50_seconds", row.seconds.median},
                   {"p90_seconds", row.seconds.p90},
                   {"bytes_per_second", rate}});
    if (row.processor.has_value()) {
      all.back()["processor_seconds_here"] = row.processor->here;
      all.back()["processor_seconds_there"] = row.processor->there;
    }
    if (row.against_best.has_value()) {
      const AgainstBest& against = *row.against_best;
      all.back()["against_best"] = {{"best", against.best},
                                    {"ratio", against.ratio},
                                    {"interval", {against.interval.low, against.interval.high}}};
    }
    if (row.phases.activities == 0) continue;
    json& phases = all.back()["mean_seconds_by_phase"];
    for (size_t i = 0; i < base::kPhases; ++i) phases[base::ToString(static_cast<base::Phase>(i))] = Mean(row, i);
  }
  if (as_json) std::cout << all.dump(2) << "\n";
}

void PrintRow(const Row& row) {
  const auto time = [](double seconds) {
    return base::FormatDuration(base::Nanoseconds(static_cast<int64_t>(seconds * 1e9)));
  };
  std::cerr << absl::StrFormat(
      "%-10s %-12s p50 %-10s p10 %-10s p90 %-10s %s/s\n", base::FormatSize(row.size), row.name,
      time(row.seconds.median), time(row.seconds.p10), time(row.seconds.p90),
      base::FormatSize(static_cast<uint64_t>(static_cast<double>(row.size) / row.seconds.median)));
  if (!row.against_best.has_value()) return;
  const AgainstBest& against = *row.against_best;
  std::cerr << absl::StrFormat("%-10s %-12s %.3f times as long as %s (95 %% sure of %.3f to %.3f)\n", "", "",
                               against.ratio, against.best, against.interval.low, against.interval.high);
}

// Prints the phases: means, in microseconds.
void PrintPhases(const std::vector<Row>& rows) {
  std::cerr << absl::StrFormat("%-10s %-12s", "size", "mean us");
  for (size_t i = 0; i < base::kPhases; ++i)
    std::cerr << absl::StrFormat(" %9s", base::ToString(static_cast<base::Phase>(i)));
  std::cerr << "\n";
  for (const Row& row : rows) {
    if (row.phases.activities == 0) continue;
    std::cerr << absl::StrFormat("%-10s %-12s", base::FormatSize(row.size), row.name);
    for (size_t i = 0; i < base::kPhases; ++i) std::cerr << absl::StrFormat(" %9.1f", Mean(row, i) * 1e6);
    std::cerr << "\n";
  }
}

// Adds up what the pulls in between spent their time on.
class PhaseCount final {
 public:
  explicit PhaseCount(base::PhaseLog* log) : log_(log) {}  // null: nothing is counted

  void Skip() {
    if (log_ != nullptr) log_->TakeTotals();
  }
  void AddTo(base::PhaseLog::Totals& sum) {
    if (log_ == nullptr) return;
    const base::PhaseLog::Totals more = log_->TakeTotals();
    sum.activities += more.activities;
    for (size_t i = 0; i < base::kPhases; ++i) sum.phases[i] = sum.phases[i] + more.phases[i];
  }

 private:
  base::PhaseLog* const log_;
};

// Adds up what both nodes' processors were busy with between Begin and AddTo.
class ProcessorCount final {
 public:
  explicit ProcessorCount(pid_t there) : there_(there) {}

  void Begin() { begin_ = Now(); }
  void AddTo(ProcessorTime& sum) const {
    const ProcessorTime now = Now();
    sum.here += now.here - begin_.here;
    sum.there += now.there - begin_.there;
  }

 private:
  ProcessorTime Now() const { return {ProcessorTimeOf(getpid()), ProcessorTimeOf(there_)}; }

  const pid_t there_;
  ProcessorTime begin_;
};

absl::StatusOr<std::unique_ptr<Contender>> Make(const std::string& name, const Settings& settings, NodePair& pair) {
  if (const auto it = kProtocols.find(name); it != kProtocols.end()) return std::make_unique<Pull>(pair, it->second);
  if (name == "redis") return StartRedisGet(pair.folder());
  if (name == "register")
    return OpenRegistration(settings.devices.empty() ? "soft:udp@127.0.0.3" : settings.devices[0]);
  return MakeMemcpy();
}

// `seconds` of each of kContenders that was measured; none without the hybrid, a protocol of its
// own, or rounds enough.
std::optional<AgainstBest> CompareHybrid(const std::map<std::string, std::vector<double>>& seconds) {
  const auto hybrid = seconds.find("auto");
  std::optional<AgainstBest> against;
  double least = 0;
  for (const auto& [name, values] : seconds) {
    if (name == "auto" || kProtocols.count(name) == 0 || values.size() < kFewestForInterval) continue;
    const double median = Summarise(values).median;
    if (against.has_value() && median >= least) continue;
    least = median;
    against.emplace().best = name;
  }
  if (hybrid == seconds.end() || !against.has_value()) return std::nullopt;
  const std::vector<double>& best = seconds.at(against->best);
  std::vector<double> ratios;
  for (size_t round = 0; round < best.size(); ++round) ratios.push_back(hybrid->second[round] / best[round]);
  std::sort(ratios.begin(), ratios.end());
  against->ratio = Quantile(ratios, 0.5);
  against->interval = MedianInterval(ratios);
  return against;
}

absl::Status Run(const Settings& settings) {
  const auto wanted = [&](const std::string& name) {
    return std::find(settings.contenders.begin(), settings.contenders.end(), name) != settings.contenders.end();
  };
  std::unique_ptr<Contender> tcp;
  if (wanted("tcp")) {  // first: it forks, and this process has one thread now
    auto started = StartTcpStream();
    if (!started.ok()) return started.status();
    tcp = *std::move(started);
  }
  NodePair pair;
  NodePairOptions options;
  options.devices = settings.devices;
  options.flags = {"--memory",       settings.memory,
                   "--registration", settings.registration,
                   "--engines",      absl::StrCat(settings.engines)};
  options.detection_here = settings.detection;
  options.detection_there = settings.holder_detection.empty() ? settings.detection : settings.holder_detection;
  options.trace = settings.trace;
  if (!settings.policy.empty()) options.flags.insert(options.flags.end(), {"--policy", settings.policy});
  if (absl::Status status = pair.Start(options); !status.ok()) return status;
  PhaseCount phases(pair.phases());
  ProcessorCount processors(pair.other());
  std::vector<std::unique_ptr<Contender>> contenders;
  std::vector<std::string> names;  // of kContenders
  for (const std::string& name : kContenders) {
    if (!wanted(name)) continue;
    names.push_back(name);
    if (name == "tcp") {
      contenders.push_back(std::move(tcp));
      continue;
    }
    auto made = Make(name, settings, pair);
    if (!made.ok()) return made.status();
    contenders.push_back(*std::move(made));
  }

  base::Random random(1);
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<Row> rows;
  for (const uint64_t size : settings.sizes) {
    const auto rounds = static_cast<uint32_t>(
        std::clamp<uint64_t>(settings.bytes_per_size / size, settings.least_rounds, settings.most_rounds));
    std::vector<std::vector<double>> seconds(contenders.size());
    std::vector<base::PhaseLog::Totals> totals(contenders.size());
    std::vector<ProcessorTime> spent(contenders.size());
    for (const auto& contender : contenders) {
      if (absl::Status status = contender->Prepare(size); !status.ok()) {
        return absl::Status(status.code(), absl::StrCat(contender->name(), " at ", size, " bytes: ", status.message()));
      }
    }
    phases.Skip();
    for (uint32_t round = 0; round < rounds; ++round) {
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
      for (const size_t i : order) {
        processors.Begin();
        const auto took = contenders[i]->Fetch();
        processors.AddTo(spent[i]);
        if (!took.ok())
          return absl::Status(took.status().code(), absl::StrCat(contenders[i]->name(), ": ", took.status().message()));
        seconds[i].push_back(*took);
        phases.AddTo(totals[i]);
      }
    }
    std::map<std::string, std::vector<double>> by_name;
    for (size_t i = 0; i < contenders.size(); ++i) by_name[names[i]] = std::move(seconds[i]);
    for (size_t i = 0; i < contenders.size(); ++i) {
      rows.push_back(
          {size, contenders[i]->name(), Summarise(by_name[names[i]]), totals[i], std::nullopt, std::nullopt});
      if (kProtocols.count(names[i]) > 0) {
        rows.back().processor = ProcessorTime{spent[i].here / rounds, spent[i].there / rounds};
      }
      if (names[i] == "auto") rows.back().against_best = CompareHybrid(by_name);
      PrintRow(rows.back());
    }
  }
  if (!settings.trace.empty()) PrintPhases(rows);
  Print(rows, settings.json);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Times pulls between two processes of this machine, beside TCP, Redis, memcpy and registration.",
               "pull");
  app.add_flag("--json", settings.json, "print JSON on standard output; the table goes to standard error");
  app.add_option("--trace", settings.trace,
                 "say what pulls spent their time on, and write each to this file, for Perfetto (ui.perfetto.dev)");
  app.add_option("--sizes", settings.sizes, "object sizes in bytes")->delimiter(',');
  app.add_option("--rounds", settings.most_rounds, "at most so many fetches of each size")->capture_default_str();
  app.add_option("--contenders", settings.contenders,
                 "what takes turns; also: register, of memory with the first device")
      ->delimiter(',')
      ->check(CLI::IsMember(kContenders));
  app.add_option("--device", settings.devices, "of the two nodes, say ibv:rxe0,ibv:rxe1; software NICs unless given")
      ->delimiter(',');
  app.add_option("--memory", settings.memory, "of each store")->capture_default_str();
  app.add_option("--engines", settings.engines, "transport engines of each node")->capture_default_str();
  app.add_option("--detection", settings.detection, "busy, event or adaptive:TIME")->capture_default_str();
  app.add_option("--holder-detection", settings.holder_detection,
                 "of the node that is pulled from; as --detection unless given");
  app.add_option("--registration", settings.registration, "arena, on_demand or cached")->capture_default_str();
  app.add_option(
      "--policy", settings.policy,
      "what auto chooses by, as tokd --policy: a table, or a file of tok tune; the built-in table unless given");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(settings);
  if (!status.ok()) std::cerr << "pull: " << status << std::endl;
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) {
  tokamak::base::SetLogLevel(tokamak::base::Severity::kWarning);
  return tokamak::bench::Main(argc, argv);
}

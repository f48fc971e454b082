#include "sim/scenario/results.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "sim/scenario/host_names.h"
#include "sim/scenario/load/conservation.h"
#include "sim/scenario/load/ideal_time.h"

namespace tokamak::sim {
namespace {

using nlohmann::json;
using State = Traffic::State;

double Nanoseconds(base::Duration time) { return static_cast<double>(time.picoseconds()) / 1e3; }
double Microseconds(base::Duration time) { return static_cast<double>(time.picoseconds()) / 1e6; }
double Gigabits(uint64_t bytes, base::Duration time) { return 8 * static_cast<double>(bytes) / Nanoseconds(time); }

const char* VerbOf(const Transfer& transfer) {
  if (transfer.way == Transfer::Way::kPut) return "put";
  if (transfer.way == Transfer::Way::kGet) return "get";
  return transfer.verb == verbs::Opcode::kRead ? "read" : transfer.verb == verbs::Opcode::kSend ? "send" : "write";
}

constexpr char kLocal[] = "local";

std::string ProtocolOf(const Transfer& transfer, const Traffic::Progress& progress) {
  if (transfer.way != Transfer::Way::kGet || progress.state != State::kFinished) return "";
  return progress.report.holder ? transport::ToString(progress.report.protocol) : kLocal;
}

// Not for a put, or a get of a local object.
bool UsesNetwork(const Transfer& transfer, const Traffic::Progress& progress) {
  return transfer.from != transfer.to && ProtocolOf(transfer, progress) != kLocal;
}

std::string StateOf(const Traffic::Progress& progress) {
  switch (progress.state) {
    case State::kWaiting:
      return "waiting";
    case State::kRunning:
      return "running";
    case State::kFinished:
      return "finished";
    case State::kFailed:
      return progress.status;
    case State::kBlocked:
      return "blocked";
  }
  return "";
}

// Returns the smallest value not exceeded by this part. Not for an empty `sorted`.
double Percentile(const std::vector<double>& sorted, double part) {
  const auto rank = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

json Distribution(std::vector<double> values) {
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (double value : values) sum += value;
  return {{"mean", sum / static_cast<double>(values.size())},
          {"median", Percentile(values, 0.5)},
          {"p99", Percentile(values, 0.99)},
          {"most", values.back()}};
}

class Tally final {
 public:
  void Add(const Transfer& transfer, const Traffic::Progress& progress, IdealTimes* ideals) {
    if (times_.empty()) first_ = last_ = progress.start;
    first_ = std::min(first_, progress.start);
    last_ = std::max(last_, progress.finish);
    bytes_ += transfer.bytes;
    const base::Duration took = progress.finish - progress.start;
    times_.push_back(Microseconds(took));
    if (UsesNetwork(transfer, progress)) slowdowns_.push_back(Nanoseconds(took) / Nanoseconds(ideals->Of(transfer)));
  }

  json Summary() const {
    const double goodput = last_ == first_ ? 0 : Gigabits(bytes_, last_ - first_);
    return {{"finished", times_.size()},
            {"goodput_gbps", goodput},
            {"completion_us", Distribution(times_)},
            {"slowdown", Distribution(slowdowns_)}};
  }

 private:
  std::vector<double> times_, slowdowns_;
  uint64_t bytes_ = 0;
  base::Time first_, last_;
};

json GroupSummary(const Run& run, uint32_t group, IdealTimes* ideals) {
  Tally all;
  std::map<std::string, Tally> by_protocol;
  uint64_t transfers = 0, bytes = 0;
  for (size_t i = 0; i < run.scenario().transfers.size(); ++i) {
    const Transfer& transfer = run.scenario().transfers[i];
    const Traffic::Progress& progress = run.traffic().progress()[i];
    if (transfer.group != group) continue;
    ++transfers;
    bytes += transfer.bytes;
    if (progress.state != State::kFinished) continue;
    all.Add(transfer, progress, ideals);
    if (transfer.way == Transfer::Way::kGet)
      by_protocol[ProtocolOf(transfer, progress)].Add(transfer, progress, ideals);
  }
  json summary = all.Summary();
  summary["transfers"] = transfers;
  summary["bytes"] = bytes;
  for (const auto& [protocol, tally] : by_protocol) summary["protocols"][protocol] = tally.Summary();
  return summary;
}

json NetworkSummary(const Run& run) {
  uint64_t marked = 0, pauses = 0, most_queued = 0, most_buffer = 0, lost = 0;
  base::Duration paused;
  std::map<std::string, uint64_t> drops;
  for (const FabricPort& port : run.ports()) {
    const PortCounters counters = port.egress->counters();
    for (const PriorityCounters& one : counters.priorities) {
      marked += one.marked;
      pauses += one.pauses_sent;
      paused = paused + one.paused;
      if (!port.is_host) most_queued = std::max(most_queued, one.most_queued);
    }
    for (int i = 0; i < kDropReasons; ++i) {
      if (counters.drops[i] != 0) drops[ToString(static_cast<DropReason>(i))] += counters.drops[i];
    }
  }
  for (uint32_t i = 0; i < run.fabric().switches(); ++i) {
    most_buffer = std::max(most_buffer, run.fabric().switch_at(i).buffer().most_used());
  }
  for (uint32_t i = 0; i < run.fabric().links(); ++i) {
    for (uint32_t end = 0; end < 2; ++end) lost += run.fabric().link(i, end).counters().lost;
  }
  return {{"transmissions", run.Transmissions()},
          {"lost", lost},
          {"drops", drops},
          {"marked", marked},
          {"pauses", pauses},
          {"paused_us", Microseconds(paused)},
          {"most_queued_bytes", most_queued},
          {"most_buffer_bytes", most_buffer}};
}

json NicSummary(const Run& run) {
  const verbs::soft::QueuePairCounters sum = run.traffic().counters().queue_pairs;
  return {{"packets_sent", sum.packets_sent},
          {"packets_retransmitted", sum.packets_retransmitted},
          {"timeouts", sum.timeouts},
          {"notifications", sum.notifications_received}};
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (file << text && file.flush()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, ": is there room, and may you write there?"));
}

}  // namespace

std::string TransfersCsv(const Run& run) {
  const Scenario& scenario = run.scenario();
  const HostNames names(scenario.topology);
  IdealTimes ideals(scenario.topology, scenario.nic.mtu);
  std::string csv =
      "group,from,to,bytes,verb,state,start_ns,finish_ns,completion_ns,ideal_ns,slowdown,"
      "protocol,holder\n";
  for (size_t i = 0; i < scenario.transfers.size(); ++i) {
    const Transfer& transfer = scenario.transfers[i];
    const Traffic::Progress& progress = run.traffic().progress()[i];
    absl::StrAppendFormat(&csv, "%s,%s,%s,%d,%s,%s,", scenario.groups[transfer.group], names.NameOf(transfer.from),
                          names.NameOf(transfer.to), transfer.bytes, VerbOf(transfer), StateOf(progress));
    const bool finished = progress.state == State::kFinished;
    const base::Duration took = progress.finish - progress.start;
    if (finished) {
      absl::StrAppendFormat(&csv, "%.3f,%.3f,%.3f,", Nanoseconds(progress.start - run.begin()),
                            Nanoseconds(progress.finish - run.begin()), Nanoseconds(took));
    } else {
      absl::StrAppend(&csv, ",,,");
    }
    if (UsesNetwork(transfer, progress)) {
      const base::Duration ideal = ideals.Of(transfer);
      absl::StrAppendFormat(&csv, "%.3f,", Nanoseconds(ideal));
      if (finished) absl::StrAppendFormat(&csv, "%.6f", Nanoseconds(took) / Nanoseconds(ideal));
    } else {
      absl::StrAppend(&csv, ",");
    }
    const std::optional<uint32_t> holder = progress.report.holder;
    absl::StrAppend(&csv, ",", ProtocolOf(transfer, progress), ",",
                    finished && holder ? scenario.topology.hosts[*holder].name : "", "\n");
  }
  return csv;
}

std::string PortsCsv(const Run& run) {
  std::string csv =
      "node,port,peer,priority,received,received_bytes,sent,sent_bytes,marked,dropped,most_queued_bytes,pauses_sent,"
      "pauses_received,paused_us,storms\n";
  for (const FabricPort& port : run.ports()) {
    const PortCounters counters = port.egress->counters();
    for (int priority = 0; priority < kPriorities; ++priority) {
      const PriorityCounters& c = counters.priorities[priority];
      if (c.received + c.sent + c.dropped + c.pauses_sent + c.pauses_received == 0) continue;
      absl::StrAppendFormat(&csv, "%s,%d,%s,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.6f,%d\n", port.node, port.port, port.peer,
                            priority, c.received, c.received_bytes, c.sent, c.sent_bytes, c.marked, c.dropped,
                            c.most_queued, c.pauses_sent, c.pauses_received, Microseconds(c.paused), c.storms);
    }
  }
  return csv;
}

std::string QueuesCsv(const Run& run) {
  std::string csv = "time_us,node,port,peer,is_host,priority,queued_bytes,gbps,paused_part\n";
  const std::vector<Sampler::Sample>& samples = run.sampler().samples();
  const Sampler::Sample none{base::Duration(), std::vector<Sampler::PortSample>(run.ports().size()), {}};
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sampler::Sample& before = i == 0 ? none : samples[i - 1];
    const base::Duration time = samples[i].time - before.time;
    for (size_t j = 0; j < run.ports().size(); ++j) {
      const FabricPort& port = run.ports()[j];
      const Sampler::PortSample& now = samples[i].ports[j];
      const uint64_t sent = now.sent_bytes - before.ports[j].sent_bytes;
      const base::Duration paused = now.paused - before.ports[j].paused;
      if (now.queued == 0 && sent == 0 && paused == base::Duration()) continue;
      absl::StrAppendFormat(&csv, "%.3f,%s,%d,%s,%d,%d,%d,%.4f,%.4f\n", Microseconds(samples[i].time), port.node,
                            port.port, port.peer, port.is_host ? 1 : 0, run.sampler().priority(), now.queued,
                            Gigabits(sent, time), Nanoseconds(paused) / Nanoseconds(time));
    }
  }
  return csv;
}

std::string RatesCsv(const Run& run) {
  std::string csv = "time_us,group,running,gbps\n";
  const std::vector<Sampler::Sample>& samples = run.sampler().samples();
  for (size_t i = 0; i < samples.size(); ++i) {
    const base::Duration time = i == 0 ? samples[i].time : samples[i].time - samples[i - 1].time;
    for (size_t group = 0; group < samples[i].groups.size(); ++group) {
      const Traffic::GroupCounters& now = samples[i].groups[group];
      const uint64_t before = i == 0 ? 0 : samples[i - 1].groups[group].bytes_sent;
      absl::StrAppendFormat(&csv, "%.3f,%s,%d,%.4f\n", Microseconds(samples[i].time), run.scenario().groups[group],
                            now.running, Gigabits(now.bytes_sent - before, time));
    }
  }
  return csv;
}

json Summary(const Run& run) {
  const Scenario& scenario = run.scenario();
  IdealTimes ideals(scenario.topology, scenario.nic.mtu);
  json groups = json::object();
  for (uint32_t i = 0; i < scenario.groups.size(); ++i) groups[scenario.groups[i]] = GroupSummary(run, i, &ideals);
  std::vector<std::string> wrong = FindUnaccounted(run.fabric(), run.quiet());
  if (!run.PayloadIsRight()) wrong.push_back("payload arrived that was not sent so");
  json summary = {{"scenario", scenario.name},
                  {"question", scenario.question},
                  {"ending", ToString(run.ending())},
                  {"seed", scenario.seed},
                  {"hosts", scenario.topology.hosts.size()},
                  {"switches", scenario.topology.switches.size()},
                  {"mtu", scenario.nic.mtu},
                  {"congestion", verbs::soft::ToString(scenario.nic.congestion)},
                  {"payload", scenario.phantom ? "phantom" : "real"},
                  {"simulated_us", Microseconds(run.end() - run.begin())},
                  {"groups", groups},
                  {"network", NetworkSummary(run)},
                  {"nics", NicSummary(run)},
                  {"unaccounted", wrong}};
  if (run.ending() == Run::Ending::kFrozen) summary["frozen_queues"] = run.PausedQueues();
  return summary;
}

absl::Status WriteResults(const Run& run, const json& summary, const std::string& folder) {
  const std::vector<std::pair<const char*, std::string>> files = {{"transfers.csv", TransfersCsv(run)},
                                                                  {"ports.csv", PortsCsv(run)},
                                                                  {"queues.csv", QueuesCsv(run)},
                                                                  {"rates.csv", RatesCsv(run)},
                                                                  {"summary.json", summary.dump(2) + "\n"}};
  for (const auto& [name, text] : files) {
    if (absl::Status s = WriteFile(absl::StrCat(folder, "/", name), text); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace tokamak::sim

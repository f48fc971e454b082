#include "lib/cli/demo.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <future>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/units.h"
#include "lib/cli/as_absl.h"
#include "lib/cli/cluster.h"
#include "lib/cli/demo_files.h"
#include "lib/cli/output.h"
#include "nlohmann/json.hpp"
#include "tokamak/client.h"

namespace tokamak::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDemoGetTimeout(60);
constexpr int kKillTries = 20;
// What a stopped holder's device had to send already arrives well within this time, also on a busy
// machine. A software NIC stops with its holder, and the getter soon gives that up; the kernel's
// goes on, on a processor that may be emulated.
constexpr std::chrono::milliseconds kSettle(300), kSettleOfKernel(1000);

struct ProtocolName {
  Protocol protocol;
  const char* name;
};
constexpr ProtocolName kProtocols[] = {
    {Protocol::kEager, "eager"}, {Protocol::kRead, "read"}, {Protocol::kWrite, "write"}};

ObjectId IdOfFile(const DemoFile& file) { return ObjectId::FromName(absl::StrCat("demo", file.path)); }

uint64_t Number(const NodeStats& stats, absl::string_view name) {
  for (const NodeNumber& number : stats.numbers) {
    if (number.name == name) return number.value;
  }
  return 0;
}

class Demo final {
 public:
  explicit Demo(const DemoSettings& settings) : settings_(settings) {}

  // Whatever happened, nothing is left running.
  ~Demo() {
    clients_.clear();
    if (!cluster_.nodes.empty()) (void)StopCluster(settings_.folder);
  }

  absl::StatusOr<DemoResult> Run() {
    for (const auto step : {&Demo::Prepare, &Demo::PutAll, &Demo::GetByEachProtocol, &Demo::KillAHolder, &Demo::Stop}) {
      if (absl::Status status = (this->*step)(); !status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  void Say(const std::string& line) const {
    if (!settings_.json) std::cout << line << std::endl;
  }

  absl::Status Prepare() {
    auto files = ChooseFiles(settings_.sources, settings_.least_bytes, settings_.memory / 3);
    if (!files.ok()) return files.status();
    files_ = *std::move(files);
    uint64_t bytes = 0;
    for (const DemoFile& file : files_) bytes += file.bytes;
    Say(absl::StrCat("files: ", files_.size(), " of this machine, ", base::FormatSize(bytes), " together, ",
                     base::FormatSize(files_.front().bytes), " to ", base::FormatSize(files_.back().bytes)));

    ClusterSettings cluster;
    cluster.folder = settings_.folder;
    cluster.memory = absl::StrCat(settings_.memory);
    cluster.directory = "redis";
    cluster.end_with_us = true;
    cluster.places.devices = settings_.devices;
    cluster.extra = settings_.tokd_flags;
    auto started = StartCluster(cluster);
    if (!started.ok()) return started.status();
    cluster_ = *std::move(started);
    for (const ClusterProcess& node : cluster_.nodes) {
      auto client = AsAbsl(Client::Connect(node.socket, {}));
      if (!client.ok()) return client.status();
      clients_.push_back(*std::move(client));
    }
    const auto stats = AsAbsl(clients_[0].NodeStats());
    if (!stats.ok()) return stats.status();
    software_nic_ = absl::StartsWith(stats->device, "soft:");
    Say(absl::StrCat("cluster: 3 tokd of ", base::FormatSize(settings_.memory), ", ",
                     settings_.devices.empty() ? absl::StrCat("on 127.0.0.1 to .3, device ", stats->device)
                                               : "devices " + absl::StrJoin(settings_.devices, ", "),
                     ", directory in a private redis-server"));
    return absl::OkStatus();
  }

  absl::Status Put(const DemoFile& file) {
    const auto bytes = ReadFile(file.path);
    if (!bytes.ok()) return bytes.status();
    return AsAbsl(clients_[0].Put(IdOfFile(file), *bytes));
  }

  absl::Status PutAll() {
    for (const DemoFile& file : files_) {
      if (absl::Status status = Put(file); !status.ok()) return status;
    }
    Say(absl::StrCat("put: all on ", cluster_.nodes[0].name));
    return absl::OkStatus();
  }

  void Check(const DemoFile& file, const Buffer& buffer) {
    if (Sha256(buffer.data()) == file.sha256) {
      ++result_.verified;
    } else {
      ++result_.mismatches;
      std::cerr << "demo: " << file.path << " came back with other bytes" << std::endl;
    }
  }

  absl::Status GetByEachProtocol() {
    for (const ProtocolName& protocol : kProtocols) {
      std::vector<std::vector<double>> seconds(SizeClasses().size());
      std::vector<uint64_t> bytes(SizeClasses().size());
      for (size_t node = 1; node < clients_.size(); ++node) {
        for (const DemoFile& file : files_) {
          const Clock::time_point begin = Clock::now();
          const auto buffer = AsAbsl(clients_[node].Get(IdOfFile(file), kDemoGetTimeout, {protocol.protocol}));
          const std::chrono::duration<double> took = Clock::now() - begin;
          if (!buffer.ok()) {
            return absl::Status(buffer.status().code(), absl::StrCat("get of ", file.path, " by ", protocol.name, ": ",
                                                                     buffer.status().message()));
          }
          seconds[ClassOf(file.bytes)].push_back(took.count());
          bytes[ClassOf(file.bytes)] += file.bytes;
          Check(file, *buffer);
        }
        if (absl::Status status = CheckProtocol(node, protocol); !status.ok()) return status;
      }
      Summarise(protocol.name, seconds, bytes);
      if (absl::Status status = EvictCopies(); !status.ok()) return status;
      Say(absl::StrCat("got: all on the two others by ", protocol.name, ", SHA-256 compared"));
    }
    return absl::OkStatus();
  }

  // The figures must be of the protocol that they are printed for.
  absl::Status CheckProtocol(size_t node, const ProtocolName& protocol) {
    const auto stats = AsAbsl(clients_[node].NodeStats());
    if (!stats.ok()) return stats.status();
    const uint64_t moved = Number(*stats, absl::StrCat("pulled_by_", protocol.name, "_total"));
    if (moved == files_.size()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(cluster_.nodes[node].name, " moved ", moved, " of ", files_.size(),
                                            " objects by ", protocol.name, "; the others went another way"));
  }

  absl::Status EvictCopies() {
    for (size_t node = 1; node < clients_.size(); ++node) {
      if (const auto evicted = AsAbsl(clients_[node].Evict(UINT64_MAX)); !evicted.ok()) return evicted.status();
    }
    return absl::OkStatus();
  }

  void Summarise(const std::string& protocol, std::vector<std::vector<double>>& seconds,
                 const std::vector<uint64_t>& bytes) {
    for (size_t i = 0; i < seconds.size(); ++i) {
      if (seconds[i].empty()) continue;
      std::sort(seconds[i].begin(), seconds[i].end());
      double total = 0;
      for (const double one : seconds[i]) total += one;
      const auto at = [&](double part) {
        return seconds[i][static_cast<size_t>(part * static_cast<double>(seconds[i].size() - 1) + 0.5)];
      };
      result_.rows.push_back({SizeClasses()[i].name, protocol, seconds[i].size(), bytes[i], at(0.5), at(0.99),
                              static_cast<double>(bytes[i]) / total});
    }
  }

  // Two nodes hold the largest file; the third gets it, and whoever of the two is serving is
  // killed.
  absl::Status KillAHolder() {
    for (int attempt = 0; attempt < kKillTries; ++attempt) {
      const auto killed = KillOnce(files_.back());
      if (!killed.ok()) return killed.status();
      if (*killed) return absl::OkStatus();
    }
    return absl::InternalError(
        "no transfer lasted long enough to be cut off: name a folder with a larger file with --from");
  }

  absl::StatusOr<bool> KillOnce(const DemoFile& file) {
    const ObjectId id = IdOfFile(file);
    if (const auto held = AsAbsl(clients_[1].Get(id, kDemoGetTimeout)); !held.ok()) return held.status();
    if (const auto evicted = AsAbsl(clients_[2].Evict(UINT64_MAX)); !evicted.ok()) return evicted.status();
    const auto before = AsAbsl(clients_[2].NodeStats());
    if (!before.ok()) return before.status();

    // By write: READs of a holder that is frozen are answered by the kernel's device all the same,
    // to the end.
    const auto protocol = software_nic_ ? Protocol::kAuto : Protocol::kWrite;
    auto get = std::async(std::launch::async, [&] { return AsAbsl(clients_[2].Get(id, kDemoGetTimeout, {protocol})); });
    const absl::StatusOr<size_t> victim = FreezeServing(get);
    if (!victim.ok()) {
      get.wait();
      return absl::IsNotFound(victim.status()) ? absl::StatusOr<bool>(false) : victim.status();
    }
    kill(cluster_.nodes[*victim].pid, SIGKILL);
    const auto buffer = get.get();
    if (!buffer.ok()) return buffer.status();
    Check(file, *buffer);
    const auto after = AsAbsl(clients_[2].NodeStats());
    if (!after.ok()) return after.status();
    if (Number(*after, "pull_next_holder_total") == Number(*before, "pull_next_holder_total")) {
      return absl::InternalError(
          absl::StrCat(cluster_.nodes[*victim].name, " was killed, but no transfer went on elsewhere"));
    }
    result_.killed = absl::StrCat(cluster_.nodes[*victim].name, " was killed in the middle of serving ",
                                  base::FormatSize(file.bytes), "; the get went on from the other holder");
    Say("kill: " + result_.killed);
    return true;
  }

  // Which of the first two nodes serves the get, stopped in the middle of it. kNotFound: it was
  // over before.
  absl::StatusOr<size_t> FreezeServing(const std::future<absl::StatusOr<Buffer>>& get) {
    while (get.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      for (size_t node : {1, 0}) {
        const auto stats = AsAbsl(clients_[node].NodeStats());
        if (!stats.ok()) return stats.status();
        if (Number(*stats, "pins_of_peers") == 0) continue;
        kill(cluster_.nodes[node].pid, SIGSTOP);
        // What it had sent already, or its device has to send, may still finish the transfer; what
        // then still runs needs another holder.
        const auto settle = software_nic_ ? kSettle : kSettleOfKernel;
        if (get.wait_for(settle) != std::future_status::ready) return node;
        kill(cluster_.nodes[node].pid, SIGCONT);
        return absl::NotFoundError("the get was over before");
      }
    }
    return absl::NotFoundError("the get was over before");
  }

  absl::Status Stop() {
    clients_.clear();
    const std::vector<ClusterProcess> processes = cluster_.nodes;
    cluster_.nodes.clear();
    const auto stopped = StopCluster(settings_.folder);
    if (!stopped.ok()) return stopped.status();
    Say(absl::StrCat("stop: ", *stopped, " processes ended, nothing left in ", settings_.folder));
    return absl::OkStatus();
  }

  const DemoSettings& settings_;
  Cluster cluster_;
  std::vector<Client> clients_;
  std::vector<DemoFile> files_;
  bool software_nic_ = true;
  DemoResult result_;
};

}  // namespace

absl::StatusOr<DemoResult> RunDemo(const DemoSettings& settings) { return Demo(settings).Run(); }

std::string FormatDemo(const DemoResult& result) {
  std::vector<std::vector<std::string>> rows = {{"SIZE", "PROTOCOL", "GETS", "P50", "P99", "BANDWIDTH"}};
  for (const SizeClass& size_class : SizeClasses()) {
    for (const DemoRow& row : result.rows) {
      if (row.size_class != size_class.name) continue;
      const auto time = [](double seconds) {
        return base::FormatDuration(base::Nanoseconds(static_cast<int64_t>(seconds * 1e9)));
      };
      rows.push_back({row.size_class, row.protocol, absl::StrCat(row.gets), time(row.p50), time(row.p99),
                      base::FormatSize(static_cast<uint64_t>(row.bandwidth)) + "/s"});
    }
  }
  return absl::StrCat("\n", FormatTable(rows, {2, 3, 4, 5}), "\nverified ", result.verified, " objects, ",
                      result.mismatches, " mismatches\n");
}

std::string DemoToJson(const DemoResult& result) {
  nlohmann::json rows = nlohmann::json::array();
  for (const DemoRow& row : result.rows) {
    rows.push_back({{"size_class", row.size_class},
                    {"protocol", row.protocol},
                    {"gets", row.gets},
                    {"bytes", row.bytes},
                    {"p50_seconds", row.p50},
                    {"p99_seconds", row.p99},
                    {"bytes_per_second", row.bandwidth}});
  }
  return nlohmann::json({{"rows", rows},
                         {"verified", result.verified},
                         {"mismatches", result.mismatches},
                         {"killed", result.killed}})
      .dump(2);
}

}  // namespace tokamak::cli

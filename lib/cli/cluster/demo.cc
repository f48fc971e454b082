#include "lib/cli/cluster/demo.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "lib/base/random.h"
#include "lib/base/units.h"
#include "lib/cli/cluster/cluster.h"
#include "lib/cli/cluster/demo_files.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "nlohmann/json.hpp"
#include "tokamak/client.h"
#include "tokamak/gets.h"

namespace tokamak::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kDemoGetTimeout(60);
constexpr std::chrono::milliseconds kLook(5);  // of copies to be evicted
constexpr int kKillTries = 20;                 // with one object
// Bytes that a stopped holder or its device may have sent uncounted: twice a window of eager
// messages (transport::EndpointOptions, 128 of 16 KiB).
constexpr uint64_t kMostOnItsWay = uint64_t{4} << 20;

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

// Returns once all threads of our program stand still.
absl::Status Suspend(const ClusterProcess& process) {
  kill(process.pid, SIGSTOP);
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(process.pid), &info, WSTOPPED | WEXITED | WNOWAIT) != 0) {
    if (errno != EINTR) return absl::UnknownError(absl::StrCat("waitid: ", std::strerror(errno)));
  }
  if (info.si_code == CLD_STOPPED) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(process.name, " ended by itself: its log in the state folder may say why"));
}

std::string IpOfNic(const std::string& device) {
  const size_t begin = device.find('@') + 1;
  return device.substr(begin, device.rfind(':') - begin);
}

class Demo final {
 public:
  explicit Demo(const DemoSettings& settings) : settings_(settings) {}

  // Leaves no process.
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
    Say(absl::StrCat("cluster: 3 tokd of ", base::FormatSize(settings_.memory), ", ",
                     settings_.devices.empty()
                         ? absl::StrCat("on ", IpOfNic(stats->device), " to .3, device ", stats->device)
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
      const Clock::time_point deadline = Clock::now() + kDemoGetTimeout;
      while (true) {
        if (const auto evicted = AsAbsl(clients_[node].Evict(UINT64_MAX)); !evicted.ok()) return evicted.status();
        const auto held = HeldBy(node);
        if (!held.ok()) return held.status();
        if (*held == 0) break;
        // The server of the last ones holds them until all bytes have arrived.
        if (Clock::now() > deadline) {
          return absl::InternalError(
              absl::StrCat(cluster_.nodes[node].name, " still holds ", *held, " copies that it cannot evict"));
        }
        std::this_thread::sleep_for(kLook);
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<size_t> HeldBy(size_t node) {
    size_t held = 0;
    for (const DemoFile& file : files_) {
      const auto contains = AsAbsl(clients_[node].Contains(IdOfFile(file)));
      if (!contains.ok()) return contains.status();
      held += *contains ? 1 : 0;
    }
    return held;
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

  // Two nodes hold the largest file; the third gets it, and its server is killed. If files complete
  // too soon, an object as large as the stores allow replaces them.
  absl::Status KillAHolder() {
    for (int attempt = 0; attempt < 2 * kKillTries; ++attempt) {
      if (attempt == kKillTries) {
        if (absl::Status status = PutMadeUp(); !status.ok()) return status;
      }
      const DemoFile& target = made_up_.has_value() ? *made_up_ : files_.back();
      if (target.bytes <= kMostOnItsWay) continue;
      const auto killed = KillOnce(target);
      if (!killed.ok()) return killed.status();
      if (*killed) return absl::OkStatus();
    }
    return absl::InternalError(
        "no transfer lasted long enough to be cut off: give each node more --memory, for a larger object");
  }

  absl::Status PutMadeUp() {
    Say("kill: the files are moved too fast to be cut off, so a larger object is made up");
    for (const DemoFile& file : files_) {
      if (absl::Status status = AsAbsl(clients_[0].Delete(IdOfFile(file))); !status.ok()) return status;
    }
    std::vector<uint8_t> bytes(settings_.memory / 2);
    base::Random random(1);
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes.size(); at += sizeof(uint64_t)) {
      const uint64_t drawn = random.Next();
      std::memcpy(&bytes[at], &drawn, sizeof(drawn));
    }
    made_up_ = DemoFile{"an object made up", bytes.size(), Sha256(bytes)};
    return AsAbsl(clients_[0].Put(IdOfFile(*made_up_), bytes));
  }

  // False: the get was (almost) over before its holder was stopped.
  absl::StatusOr<bool> KillOnce(const DemoFile& file) {
    const ObjectId id = IdOfFile(file);
    const auto held = AsAbsl(clients_[1].Get(id, kDemoGetTimeout));
    if (!held.ok()) return held.status();
    if (const auto evicted = AsAbsl(clients_[2].Evict(UINT64_MAX)); !evicted.ok()) return evicted.status();
    const auto before = Served();
    if (!before.ok()) return before.status();

    // Eager messages end with the sending process, on any device, and the getter knows its progress
    // to a few MiB. An RDMA device answers READs for a stopped holder, and the progress of WRITEs
    // is unknown to the getter.
    Gets gets(clients_[2]);
    auto began = AsAbsl(gets.Begin(id, kDemoGetTimeout, {Protocol::kEager}));
    if (!began.ok()) return began.status();
    const auto victim = StopServing(gets, id, *before);
    if (!victim.ok()) return victim.status();
    if (victim->has_value()) kill(cluster_.nodes[**victim].pid, SIGKILL);
    auto answer = AsAbsl(gets.Next(kDemoGetTimeout));
    if (!answer.ok()) return answer.status();
    const auto buffer = AsAbsl(std::move(answer->buffer));
    if (!buffer.ok()) return buffer.status();
    if (!victim->has_value()) return false;

    Check(file, *buffer);
    const size_t survivor = **victim == 0 ? 1 : 0;
    const auto after = ServedBy(survivor);
    if (!after.ok()) return after.status();
    const std::string name = cluster_.nodes[**victim].name;
    if (*after == (*before)[survivor]) {
      return absl::InternalError(absl::StrCat(name, " was killed, but no transfer went on elsewhere"));
    }
    result_.killed = absl::StrCat(name, " was killed in the middle of serving ", base::FormatSize(file.bytes),
                                  "; the get went on from the other holder");
    Say("kill: " + result_.killed);
    return true;
  }

  absl::StatusOr<uint64_t> ServedBy(size_t node) {
    const auto stats = AsAbsl(clients_[node].NodeStats());
    if (!stats.ok()) return stats.status();
    return Number(*stats, "pins_of_peers_total");
  }

  absl::StatusOr<std::array<uint64_t, 2>> Served() {
    std::array<uint64_t, 2> served{};
    for (size_t node : {0, 1}) {
      const auto of_node = ServedBy(node);
      if (!of_node.ok()) return of_node.status();
      served[node] = *of_node;
    }
    return served;
  }

  // Stops the serving holder while more bytes are missing than it can have sent. nullopt, with none
  // stopped: the get is over, or possibly so.
  absl::StatusOr<std::optional<size_t>> StopServing(Gets& gets, const ObjectId& id,
                                                    const std::array<uint64_t, 2>& before) {
    if (absl::Status status = AsAbsl(gets.Send()); !status.ok()) return status;
    Part part = Part::kNone;
    while (part == Part::kNone) part = Look(id);
    const auto served = Served();
    if (!served.ok()) return served.status();
    const size_t victim = (*served)[0] > before[0] ? 0 : 1;
    const size_t other = 1 - victim;
    // Both served: it went on from another already.
    if ((*served)[victim] == before[victim] || (*served)[other] > before[other]) return std::nullopt;
    const ClusterProcess& process = cluster_.nodes[victim];
    if (absl::Status status = Suspend(process); !status.ok()) return status;
    if (Look(id) == Part::kMiddle) return victim;
    kill(process.pid, SIGCONT);
    return std::nullopt;
  }

  // Progress on the third node of a begun get; none under way: over.
  enum class Part { kNone, kMiddle, kAllButAll };
  Part Look(const ObjectId& id) {
    const auto progress = AsAbsl(clients_[2].Progress(id));
    if (!progress.ok()) return Part::kAllButAll;
    if (progress->moved == 0) return Part::kNone;
    return progress->total - progress->moved > kMostOnItsWay ? Part::kMiddle : Part::kAllButAll;
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
  std::optional<DemoFile> made_up_;
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

// How long a node takes to pull an object from another process, beside a TCP stream, a Redis GET and memcpy in the same run.
//
//   bazel run -c opt //tests/bench:pull -- --json
//
// This process is one node (the daemon's own wiring on its own loop, without the client protocol); a tokd beside it is the
// other, on 127.0.0.2. Contenders take turns within each size, so that a machine that slows down slows all of them down.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "glog/logging.h"
#include "lib/base/units.h"
#include "lib/client/client.h"
#include "lib/daemon/daemon.h"
#include "lib/os/child_process.h"
#include "lib/os/epoll_loop.h"
#include "nlohmann/json.hpp"
#include "tests/bench/baselines.h"
#include "tests/bench/summary.h"

namespace tokamak::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

struct Settings {
  std::vector<uint64_t> sizes = {1,         64,      1 << 10, 4 << 10,  16 << 10, 64 << 10,
                                 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20};
  uint64_t bytes_per_size = 512 << 20;  // how often each contender fetches depends on the size
  uint32_t most_rounds = 500;
  uint32_t least_rounds = 7;
  uint32_t engines = 1;
  std::string detection = "event";
  std::string registration = "arena";
  bool json = false;
};

// Both nodes, joined by the first one's directory.
class Pair final {
 public:
  absl::Status Start(const Settings& settings) {
    folder_ = std::filesystem::temp_directory_path() / absl::StrCat("tokamak-bench-", getpid());
    std::filesystem::create_directory(folder_);
    const std::vector<std::string> common = {"--memory",       "2GiB",
                                             "--detection",    settings.detection,
                                             "--registration", settings.registration,
                                             "--engines",      absl::StrCat(settings.engines)};
    std::vector<std::string> mine = {
        "pull", "--listen", "127.0.0.1:7100", "--device", "soft:udp@127.0.0.1", "--socket", folder_ + "/here.sock"};
    mine.insert(mine.end(), common.begin(), common.end());
    std::vector<const char*> argv;
    for (const std::string& word : mine) argv.push_back(word.c_str());
    const daemon::ParsedFlags flags = daemon::ParseFlags(static_cast<int>(argv.size()), argv.data());
    if (!flags.run) return absl::InvalidArgumentError("wrong flags");
    loop_.SetDetection(flags.options.detection);
    auto daemon = daemon::Daemon::Start(loop_, flags.options, [] { return false; });
    if (!daemon.ok()) return daemon.status();
    daemon_ = *std::move(daemon);
    who_ = daemon_->node().store().NewOwner();

    os::ChildOptions child;
    child.argv = {"lib/daemon/tokd",    "--listen", "127.0.0.2:7100",        "--device",
                  "soft:udp@127.0.0.2", "--socket", folder_ + "/there.sock", "--directory",
                  "tokd@127.0.0.1:7100"};
    child.argv.insert(child.argv.end(), common.begin(), common.end());
    child.output = folder_ + "/there.log";
    child.die_with_parent = true;
    auto started = os::ChildProcess::Start(child);
    if (!started.ok()) return started.status();
    other_ = *std::move(started);
    return AwaitOther();
  }

  ~Pair() {
    client_.reset();
    if (other_ != nullptr) other_->Stop(base::Seconds(10));
    daemon_.reset();
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  const std::string& folder() const { return folder_; }
  node::Node& node() { return daemon_->node(); }
  os::EpollLoop& loop() { return loop_; }
  store::Owner who() const { return who_; }

  // Calls the other node's daemon from a thread of its own, while our loop goes on: that daemon asks our directory.
  absl::Status AskOther(const std::function<absl::Status(client::Client&)>& ask) {
    auto answer = std::async(std::launch::async, [&] { return ask(*client_); });
    loop_.RunUntil([&] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; },
                   loop_.Now() + base::Seconds(60));
    return answer.get();
  }

 private:
  // The other node is there when our directory knows two.
  absl::Status AwaitOther() {
    size_t nodes = 0;
    bool asking = false;
    const bool ready = loop_.RunUntil(
        [&] {
          if (!asking && nodes < 2) {
            asking = true;
            daemon_->node().directory().Nodes(base::Seconds(1),
                                              [&](absl::StatusOr<std::vector<directory::NodeInfo>> all) {
                                                nodes = all.ok() ? all->size() : 0;
                                                asking = false;
                                              });
          }
          return nodes == 2;
        },
        loop_.Now() + base::Seconds(30));
    if (!ready) return absl::UnavailableError(absl::StrCat("the other tokd did not join: ", Log()));
    auto client = client::Client::Connect(folder_ + "/there.sock", {});
    if (!client.ok()) return client.status();
    client_ = std::make_unique<client::Client>(*std::move(client));
    return absl::OkStatus();
  }

  std::string Log() const {
    std::ifstream file(folder_ + "/there.log");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  std::string folder_;
  os::EpollLoop loop_;
  std::unique_ptr<daemon::Daemon> daemon_;
  std::unique_ptr<os::ChildProcess> other_;
  std::unique_ptr<client::Client> client_;
  store::Owner who_{};
};

class Pull final : public Contender {
 public:
  Pull(Pair& pair, transport::Protocol protocol) : pair_(pair), protocol_(protocol) {}

  std::string name() const override { return absl::StrCat("pull ", transport::ToString(protocol_)); }

  absl::Status Prepare(uint64_t size) override {
    const base::ObjectId old = id_;
    id_ = base::ObjectId::FromName(absl::StrCat(name(), size));
    const absl::Status status = pair_.AskOther([&](client::Client& client) -> absl::Status {
      if (held_) {
        if (absl::Status gone = client.Delete(old); !gone.ok()) return gone;
      }
      auto buffer = client.Create(id_, size);
      if (!buffer.ok()) return buffer.status();
      std::fill(buffer->data().begin(), buffer->data().end(), 0x5a);
      return buffer->Seal();
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
    const auto get = pair_.node().Get({&id_, 1}, options, pair_.who(), [&](std::vector<node::GetResult> results) {
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
  Pair& pair_;
  const transport::Protocol protocol_;
  base::ObjectId id_;
  bool held_ = false;
};

struct Row {
  uint64_t size;
  std::string name;
  Summary seconds;
};

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
}

absl::Status Run(const Settings& settings) {
  auto tcp = StartTcpStream();  // first: it forks, and this process has one thread now
  if (!tcp.ok()) return tcp.status();
  Pair pair;
  if (absl::Status status = pair.Start(settings); !status.ok()) return status;
  std::vector<std::unique_ptr<Contender>> contenders;
  for (const auto protocol : {transport::Protocol::kEager, transport::Protocol::kRead, transport::Protocol::kWrite,
                              transport::Protocol::kAuto}) {
    contenders.push_back(std::make_unique<Pull>(pair, protocol));
  }
  contenders.push_back(*std::move(tcp));
  auto redis = StartRedisGet(pair.folder());
  if (!redis.ok()) return redis.status();
  contenders.push_back(*std::move(redis));
  contenders.push_back(MakeMemcpy());

  std::vector<Row> rows;
  for (const uint64_t size : settings.sizes) {
    const auto rounds = static_cast<uint32_t>(
        std::clamp<uint64_t>(settings.bytes_per_size / size, settings.least_rounds, settings.most_rounds));
    std::vector<std::vector<double>> seconds(contenders.size());
    for (const auto& contender : contenders) {
      if (absl::Status status = contender->Prepare(size); !status.ok()) {
        return absl::Status(status.code(), absl::StrCat(contender->name(), " at ", size, " bytes: ", status.message()));
      }
    }
    for (uint32_t round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < contenders.size(); ++i) {
        const auto took = contenders[i]->Fetch();
        if (!took.ok())
          return absl::Status(took.status().code(), absl::StrCat(contenders[i]->name(), ": ", took.status().message()));
        seconds[i].push_back(*took);
      }
    }
    for (size_t i = 0; i < contenders.size(); ++i) {
      rows.push_back({size, contenders[i]->name(), Summarise(std::move(seconds[i]))});
      PrintRow(rows.back());
    }
  }
  Print(rows, settings.json);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Times pulls between two processes on loopback, beside TCP, Redis and memcpy.", "pull");
  app.add_flag("--json", settings.json, "print JSON on standard output; the table goes to standard error");
  app.add_option("--sizes", settings.sizes, "object sizes in bytes")->delimiter(',');
  app.add_option("--rounds", settings.most_rounds, "at most so many fetches of each size")->capture_default_str();
  app.add_option("--engines", settings.engines, "transport engines of each node")->capture_default_str();
  app.add_option("--detection", settings.detection, "busy, event or adaptive:TIME")->capture_default_str();
  app.add_option("--registration", settings.registration, "arena or on_demand")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(settings);
  if (!status.ok()) std::cerr << "pull: " << status << std::endl;
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_minloglevel = 1;
  return tokamak::bench::Main(argc, argv);
}

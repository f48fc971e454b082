// How long a program waits for a small object: of another node, of its own, and from Redis, in the
// same run.
//
//   bazel run -c opt //tests/bench:get                               # everything on processor 0
//   bazel run -c opt //tests/bench:get -- --holder-cpu 0 --getter-cpu 1
//
// Two tokd, the holder with the directory; this program is the getter's. Where a wake-up of another
// processor costs more than all else, placement decides: so everybody is pinned, and Redis is
// beside the holder. Contenders take turns. "get x64" is one get of 64 objects, its times are each
// object's; "cpu" is what both nodes and this program spend on it.
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/cli/places.h"
#include "lib/client/client.h"
#include "lib/os/child_process.h"
#include "tests/bench/baselines.h"
#include "tests/bench/summary.h"

namespace tokamak::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr base::Duration kPatience = base::Seconds(60);
constexpr uint32_t kPipeline = 16;  // GETs of Redis

struct Settings {
  std::vector<uint64_t> sizes = {64, 1024};
  uint32_t rounds = 2000;
  uint32_t together = 64;
  int holder_cpu = 0;
  int getter_cpu = 0;
  std::vector<std::string> flags;  // of both tokd
};

// This thread, and what it starts from now on.
absl::Status PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (sched_setaffinity(0, sizeof(set), &set) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("this program may not run on processor ", cpu));
}

class Node final {
 public:
  static absl::StatusOr<std::unique_ptr<Node>> Start(const std::string& folder, const cli::NodePlace& place,
                                                     std::vector<std::string> flags) {
    const std::string socket = absl::StrCat(folder, "/", place.listen.port, "-", place.listen.ToString(), ".sock");
    os::ChildOptions options;
    options.argv = {
        "lib/daemon/tokd", "--listen", place.listen.ToString(), "--device", place.device, "--socket", socket,
        "--memory",        "256MiB"};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    options.output = socket + ".log";
    options.die_with_parent = true;
    auto process = os::ChildProcess::Start(options);
    if (!process.ok()) return process.status();
    auto client = client::Client::Connect(socket);
    for (int i = 0; i < 1500 && !client.ok() && (*process)->running(); ++i) {
      (void)(*process)->Wait(base::Milliseconds(20));
      client = client::Client::Connect(socket);
    }
    if (!client.ok()) {
      std::ifstream log(options.output);
      return absl::UnavailableError(std::string(std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>()));
    }
    return std::make_unique<Node>(*std::move(process), *std::move(client));
  }
  Node(std::unique_ptr<os::ChildProcess> process, client::Client client)
      : process_(std::move(process)), client_(std::move(client)) {}
  ~Node() { process_->Stop(base::Seconds(10)); }

  client::Client& client() { return client_; }
  pid_t pid() const { return process_->pid(); }

 private:
  std::unique_ptr<os::ChildProcess> process_;
  client::Client client_;
};

// Seconds that a process has spent on processors.
double ProcessorTimeOf(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

// One operation of a program on some objects at once, timed; `make` is not.
class Operation final : public Contender {
 public:
  using Ids = std::vector<base::ObjectId>;
  using Step = std::function<absl::Status(const Ids& ids, uint64_t size)>;
  // `processes` work on it, beside this one.
  Operation(std::string name, uint32_t count, std::vector<pid_t> processes, Step make, Step run)
      : name_(std::move(name)),
        count_(count),
        processes_(std::move(processes)),
        make_(std::move(make)),
        run_(std::move(run)) {}

  std::string name() const override { return name_; }
  absl::Status Prepare(uint64_t size) override {
    size_ = size;
    const absl::Status status = Fetch().status();  // the first makes the connection
    processor_time_ = 0;
    fetched_ = 0;
    return status;
  }
  absl::StatusOr<double> Fetch() override {
    Ids ids;
    for (uint32_t i = 0; i < count_; ++i) ids.push_back(base::ObjectId::FromName(absl::StrCat(name_, " ", ++last_)));
    if (absl::Status made = make_(ids, size_); !made.ok()) return made;
    const double used_before = Used();
    const Clock::time_point begin = Clock::now();
    const absl::Status status = run_(ids, size_);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    processor_time_ += Used() - used_before;
    fetched_ += count_;
    if (!status.ok()) return status;
    return seconds / count_;
  }
  double ProcessorTime() const override { return fetched_ == 0 ? 0 : processor_time_ / double(fetched_); }

 private:
  double Used() const {
    double used = ProcessorTimeOf(getpid());
    for (const pid_t process : processes_) used += ProcessorTimeOf(process);
    return used;
  }

  const std::string name_;
  const uint32_t count_;
  const std::vector<pid_t> processes_;
  const Step make_;
  const Step run_;
  uint64_t size_ = 0;
  uint64_t last_ = 0;
  uint64_t fetched_ = 0;
  double processor_time_ = 0;
};

absl::Status Get(client::Client& client, const Operation::Ids& ids) {
  for (const auto& buffer : client.Get(ids, kPatience)) {
    if (!buffer.ok()) return buffer.status();
  }
  return absl::OkStatus();
}

absl::Status Put(client::Client& client, const Operation::Ids& ids, uint64_t size) {
  const std::vector<uint8_t> data(size, 0x5a);
  std::vector<client::PutObject> objects;
  for (const base::ObjectId& id : ids) objects.push_back({id, data, {}});
  for (const absl::Status& status : client.Put(objects)) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<std::unique_ptr<Contender>> Operations(Node& holding, Node& getting, uint32_t together) {
  client::Client& holder = holding.client();
  client::Client& getter = getting.client();
  const std::vector<pid_t> both = {holding.pid(), getting.pid()}, own = {getting.pid()};
  using Ids = Operation::Ids;
  const Operation::Step nothing = [](const Ids&, uint64_t) { return absl::OkStatus(); };
  const Operation::Step there = [&](const Ids& ids, uint64_t size) { return Put(holder, ids, size); };
  const Operation::Step here = [&](const Ids& ids, uint64_t size) { return Put(getter, ids, size); };
  const Operation::Step get = [&](const Ids& ids, uint64_t) { return Get(getter, ids); };
  std::vector<std::unique_ptr<Contender>> all;
  all.push_back(std::make_unique<Operation>("get", 1, both, there, get));
  all.push_back(std::make_unique<Operation>(absl::StrCat("get x", together), together, both, there, get));
  all.push_back(std::make_unique<Operation>("local get", 1, own, here, get));
  all.push_back(
      std::make_unique<Operation>("create+seal", 1, own, nothing, [&](const Ids& ids, uint64_t size) -> absl::Status {
        auto buffer = getter.Create(ids.front(), size);
        if (!buffer.ok()) return buffer.status();
        return buffer->Seal();
      }));
  all.push_back(std::make_unique<Operation>("put", 1, own, nothing, here));
  return all;
}

absl::Status Measure(const Settings& settings, std::vector<std::unique_ptr<Contender>>& contenders) {
  for (const uint64_t size : settings.sizes) {
    std::vector<std::vector<double>> microseconds(contenders.size());
    for (const auto& contender : contenders) {
      if (absl::Status status = contender->Prepare(size); !status.ok()) return status;
    }
    for (uint32_t round = 0; round < settings.rounds; ++round) {
      for (size_t i = 0; i < contenders.size(); ++i) {
        const auto took = contenders[i]->Fetch();
        if (!took.ok()) return took.status();
        microseconds[i].push_back(*took * 1e6);
      }
    }
    const double redis = Summarise(microseconds.back()).median;
    for (size_t i = 0; i < contenders.size(); ++i) {
      const Summary s = Summarise(microseconds[i]);
      std::cout << absl::StrFormat(
          "%6d B  %-13s p50 %7.1f us  p10 %7.1f  p90 %7.1f  %5.2f x redis  %7.0f objects/s  cpu %6.1f us\n", size,
          contenders[i]->name(), s.median, s.p10, s.p90, s.median / redis, 1e6 / s.median,
          contenders[i]->ProcessorTime() * 1e6);
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Settings& settings, const std::string& folder) {
  cli::Places places;
  places.port = 7100;
  const auto placed = cli::PlaceNodes(places, 2);
  if (!placed.ok()) return placed.status();
  if (absl::Status status = PinTo(settings.holder_cpu); !status.ok()) return status;
  auto redis = StartRedisGet(folder);
  if (!redis.ok()) return redis.status();
  auto pipelined = StartRedisGet(folder, kPipeline);
  if (!pipelined.ok()) return pipelined.status();
  auto holder = Node::Start(folder, (*placed)[0], settings.flags);
  if (!holder.ok()) return holder.status();
  if (absl::Status status = PinTo(settings.getter_cpu); !status.ok()) return status;
  std::vector<std::string> flags = settings.flags;
  flags.insert(flags.end(), {"--directory", absl::StrCat("tokd@", (*placed)[0].listen.ToString())});
  auto getter = Node::Start(folder, (*placed)[1], flags);
  if (!getter.ok()) return getter.status();
  auto contenders = Operations(**holder, **getter, settings.together);
  contenders.push_back(*std::move(pipelined));
  contenders.push_back(*std::move(redis));
  return Measure(settings, contenders);
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Times what a program does with small objects, beside Redis.", "get");
  app.add_option("--sizes", settings.sizes, "of the objects, in bytes")->delimiter(',');
  app.add_option("--rounds", settings.rounds, "for each size")->capture_default_str();
  app.add_option("--together", settings.together, "objects of one get of several")->capture_default_str();
  app.add_option("--holder-cpu", settings.holder_cpu, "of the holder, the directory and Redis")->capture_default_str();
  app.add_option("--getter-cpu", settings.getter_cpu, "of the other node and this program")->capture_default_str();
  app.add_option("--tokd", settings.flags, "a flag of both tokd, such as --tokd=--engines=0; may be repeated");
  CLI11_PARSE(app, argc, argv);
  const std::string folder = std::filesystem::temp_directory_path() / absl::StrCat("tokamak-bench-", getpid());
  std::filesystem::create_directory(folder);
  const absl::Status status = Run(settings, folder);
  std::filesystem::remove_all(folder);
  if (!status.ok()) std::cerr << "get: " << status << std::endl;
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) { return tokamak::bench::Main(argc, argv); }

// How long a program waits for a small object: of another node, of its own, and from Redis, in the
// same run.
//
//   bazel run -c opt //tests/bench:get                               # everything on processor 0
//   bazel run -c opt //tests/bench:get -- --holder-cpu 0 --getter-cpu 1
//
// Two tokd, the holder with the directory; this program is the getter's. On machines where waking
// another processor costs more than all else, placement decides: so everything is pinned; Redis
// over TCP is beside the holder, as another node would be, and Redis over a Unix socket beside the
// getter. Contenders take turns of 20 operations, so that the deferred work of each falls into its
// own time, and caches are as warm for one as for another. The objects to get are confirmed: the
// directory knows them before the turn begins.
//
//   known get      of an object of which the getter's node asked a moment ago who holds it
//   get x64        one program that has 64 gets of one object each under way
//   multi-get x64  one get of 64 objects
//   create+seal    a buffer that is filled and then put in one message; claim+seal takes the id
//                  before
//   4 get x16      four clients, each on a thread of its own, that have 16 gets under way each
//
// Their times are each object's; "cpu" is what both nodes and this program spend on it.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/cli/cluster/places.h"
#include "lib/cli/common/as_absl.h"
#include "lib/os/process/child_process.h"
#include "tests/bench/baselines.h"
#include "tests/bench/processor_time.h"
#include "tests/bench/summary.h"
#include "tokamak/client.h"
#include "tokamak/gets.h"

namespace tokamak::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience(60);
constexpr uint32_t kPipeline = 16;  // GETs of Redis
constexpr uint32_t kWindows = 4;    // objects of one round, over those that are got at once
constexpr uint32_t kClients = 4;
constexpr uint32_t kRoundsTogether = 100;  // at most, of those that get many at once

struct Settings {
  std::vector<uint64_t> sizes = {64, 1024};
  uint32_t rounds = 40;
  uint32_t turn = 20;
  uint32_t together = 64;
  std::vector<std::string> only;  // names; empty: all
  int holder_cpu = 0;
  int getter_cpu = 0;
  int program_cpu = -1;            // below 0: the getter's
  uint32_t spin = 0;               // of this program, in microseconds
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
                                                     std::vector<std::string> flags,
                                                     const ClientOptions& client_options) {
    const std::string socket = absl::StrCat(folder, "/", place.listen.port, "-", place.listen.ToString(), ".sock");
    os::ChildOptions options;
    options.argv = {
        "lib/daemon/tokd", "--listen", place.listen.ToString(), "--device", place.device, "--socket", socket,
        "--memory",        "256MiB"};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    if (!place.listen.is_loopback()) options.argv.push_back("--insecure");
    options.output = socket + ".log";
    options.die_with_parent = true;
    auto process = os::ChildProcess::Start(options);
    if (!process.ok()) return process.status();
    auto client = Client::Connect(socket, client_options);
    for (int i = 0; i < 1500 && !client.ok() && (*process)->running(); ++i) {
      (void)(*process)->Wait(base::Milliseconds(20));
      client = Client::Connect(socket, client_options);
    }
    if (!client.ok()) {
      std::ifstream log(options.output);
      return absl::UnavailableError(std::string(std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>()));
    }
    return std::make_unique<Node>(socket, client_options, *std::move(process), *std::move(client));
  }
  Node(std::string socket, ClientOptions client_options, std::unique_ptr<os::ChildProcess> process, Client client)
      : socket_(std::move(socket)),
        client_options_(std::move(client_options)),
        process_(std::move(process)),
        client_(std::move(client)) {}
  ~Node() { process_->Stop(base::Seconds(10)); }

  Client& client() { return client_; }
  Result<Client> NewClient() const { return Client::Connect(socket_, client_options_); }
  pid_t pid() const { return process_->pid(); }

 private:
  const std::string socket_;
  const ClientOptions client_options_;
  std::unique_ptr<os::ChildProcess> process_;
  Client client_;
};

// One operation of a program on some objects at once, timed; `make` is not.
class Operation final : public Contender {
 public:
  using Ids = std::vector<ObjectId>;
  using Step = std::function<absl::Status(const Ids& ids, uint64_t size)>;
  // On `count` objects at once, made for `turn` operations before the first; `processes` work on
  // it, beside this one.
  Operation(std::string name, uint32_t count, uint32_t turn, std::vector<pid_t> processes, Step make, Step run)
      : name_(std::move(name)),
        count_(count),
        turn_(turn),
        processes_(std::move(processes)),
        make_(std::move(make)),
        run_(std::move(run)) {}

  std::string name() const override { return name_; }
  absl::Status Prepare(uint64_t size) override {
    size_ = size;
    made_.clear();
    const absl::Status status = Fetch().status();  // the first makes the connection
    processor_time_ = 0;
    fetched_ = 0;
    return status;
  }
  absl::StatusOr<double> Fetch() override {
    if (made_.empty()) {
      if (absl::Status made = MakeForATurn(); !made.ok()) return made;
    }
    const Ids ids = std::move(made_.back());
    made_.pop_back();
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
  absl::Status MakeForATurn() {
    for (uint32_t i = 0; i < turn_; ++i) {
      Ids& ids = made_.emplace_back();
      for (uint32_t k = 0; k < count_; ++k) ids.push_back(ObjectId::FromName(absl::StrCat(name_, " ", ++last_)));
      if (absl::Status made = make_(ids, size_); !made.ok()) return made;
    }
    return absl::OkStatus();
  }

  double Used() const {
    double used = ProcessorTimeOf(getpid());
    for (const pid_t process : processes_) used += ProcessorTimeOf(process);
    return used;
  }

  const std::string name_;
  const uint32_t count_;
  const uint32_t turn_;
  const std::vector<pid_t> processes_;
  const Step make_;
  const Step run_;
  uint64_t size_ = 0;
  std::vector<Ids> made_;  // for the operations of this turn
  uint64_t last_ = 0;
  uint64_t fetched_ = 0;
  double processor_time_ = 0;
};

Status Get(Client& client, const Operation::Ids& ids) {
  std::vector<Buffer> got;
  for (auto& buffer : client.Get(ids, kPatience)) {
    if (!buffer.ok()) return buffer.status();
    got.push_back(*std::move(buffer));
  }
  Buffer::ReleaseAll(got);
  return Status();
}

// All of them, `together` under way.
Status GetTogether(const Client& client, Span<const ObjectId> ids, uint32_t together) {
  Gets gets(client);
  std::vector<Buffer> got;
  for (;;) {
    for (; !ids.empty() && gets.pending() < together; ids = ids.subspan(1)) {
      if (auto begun = gets.Begin(ids.front(), kPatience); !begun.ok()) return begun.status();
    }
    if (gets.pending() == 0) return Status();
    if (Status sent = gets.Send(); !sent.ok()) return sent;
    Buffer::ReleaseAll(got);
    got.clear();
    do {
      auto next = gets.Next(kPatience);
      if (!next.ok()) return next.status();
      if (!next->buffer.ok()) return next->buffer.status();
      got.push_back(*std::move(next->buffer));
    } while (gets.ended() > 0);
  }
}

// Each client gets its share.
Status GetByMany(Span<const Client> clients, Span<const ObjectId> ids, uint32_t together) {
  std::vector<Status> statuses(clients.size());
  std::vector<std::thread> threads;
  const size_t share = ids.size() / clients.size();
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = GetTogether(clients[i], ids.subspan(i * share, share), together); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return Status();
}

Status Put(Client& client, const Operation::Ids& ids, uint64_t size, bool confirmed = false) {
  const std::vector<uint8_t> data(size, 0x5a);
  std::vector<PutObject> objects;
  for (const ObjectId& id : ids) objects.push_back({id, data, {}});
  PutOptions options;
  options.confirmed = confirmed;
  for (const Status& status : client.Put(objects, options)) {
    if (!status.ok()) return status;
  }
  return Status();
}

struct Entry {
  std::unique_ptr<Contender> contender;
  uint32_t turn;    // operations that follow each other
  uint32_t rounds;  // at most
};

// `many`: further clients of the getting node.
std::vector<Entry> Operations(Node& holding, Node& getting, std::vector<Client>& many, const Settings& settings) {
  const uint32_t together = settings.together;
  Client& holder = holding.client();
  Client& getter = getting.client();
  const std::vector<pid_t> both = {holding.pid(), getting.pid()}, own = {getting.pid()};
  const uint32_t window = together, each = std::max<uint32_t>(1, together / kClients);
  using Ids = Operation::Ids;
  const Operation::Step nothing = [](const Ids&, uint64_t) { return absl::OkStatus(); };
  const Operation::Step there = [&](const Ids& ids, uint64_t size) {
    return cli::AsAbsl(Put(holder, ids, size, /*confirmed=*/true));
  };
  const Operation::Step here = [&](const Ids& ids, uint64_t size) {
    return cli::AsAbsl(Put(getter, ids, size, /*confirmed=*/true));
  };
  const Operation::Step there_and_known = [&](const Ids& ids, uint64_t size) {
    absl::Status status = cli::AsAbsl(Put(holder, ids, size, /*confirmed=*/true));
    for (const ObjectId& id : ids) status.Update(cli::AsAbsl(getter.Stat(id).status()));
    return status;
  };
  const Operation::Step put = [&](const Ids& ids, uint64_t size) { return cli::AsAbsl(Put(getter, ids, size)); };
  const Operation::Step get = [&](const Ids& ids, uint64_t) { return cli::AsAbsl(Get(getter, ids)); };
  const Operation::Step get_together = [&getter, window](const Ids& ids, uint64_t) {
    return cli::AsAbsl(GetTogether(getter, ids, window));
  };
  const Operation::Step get_by_many = [&many, each](const Ids& ids, uint64_t) {
    return cli::AsAbsl(GetByMany(many, ids, each));
  };
  const auto create = [&](bool claim) -> Operation::Step {
    PutOptions options;
    options.claim = claim;
    return [&getter, options](const Ids& ids, uint64_t size) -> absl::Status {
      auto buffer = getter.Create(ids.front(), size, {}, options);
      if (!buffer.ok()) return cli::AsAbsl(buffer.status());
      std::fill(buffer->data().begin(), buffer->data().end(), 0x5a);
      return cli::AsAbsl(buffer->Seal());
    };
  };
  std::vector<Entry> all;
  const auto add = [&](const std::string& name, uint32_t count, const std::vector<pid_t>& processes,
                       const Operation::Step& make, const Operation::Step& run) {
    const uint32_t turn = count == 1 ? settings.turn : 1;
    all.push_back({std::make_unique<Operation>(name, count, turn, processes, make, run), turn,
                   count == 1 ? settings.rounds : kRoundsTogether});
  };
  add("get", 1, both, there, get);
  add("known get", 1, both, there_and_known, get);
  add(absl::StrCat("get x", together), kWindows * together, both, there, get_together);
  add(absl::StrCat("multi-get x", together), together, both, there, get);
  add(absl::StrCat(kClients, " get x", each), kWindows * kClients * each, both, there, get_by_many);
  add("local get", 1, own, here, get);
  add("create+seal", 1, own, nothing, create(/*claim=*/false));
  add("claim+seal", 1, own, nothing, create(/*claim=*/true));
  add("put", 1, own, nothing, put);
  return all;
}

absl::Status Measure(const Settings& settings, const std::vector<Entry>& contenders) {
  for (const uint64_t size : settings.sizes) {
    std::vector<std::vector<double>> microseconds(contenders.size());
    for (const Entry& entry : contenders) {
      if (absl::Status status = entry.contender->Prepare(size); !status.ok()) return status;
    }
    for (uint32_t round = 0; round < settings.rounds; ++round) {
      for (size_t i = 0; i < contenders.size(); ++i) {
        if (round >= contenders[i].rounds) continue;
        for (uint32_t k = 0; k < contenders[i].turn; ++k) {
          const auto took = contenders[i].contender->Fetch();
          if (!took.ok()) return took.status();
          microseconds[i].push_back(*took * 1e6);
        }
      }
    }
    const double tcp = Summarise(microseconds[microseconds.size() - 2]).median;
    const double unix_socket = Summarise(microseconds.back()).median;
    for (size_t i = 0; i < contenders.size(); ++i) {
      const Summary s = Summarise(microseconds[i]);
      std::cout << absl::StrFormat(
          "%6d B  %-13s p50 %7.1f us  p10 %7.1f  p90 %7.1f  %5.2f x tcp  %5.2f x unix  %7.0f objects/s  cpu %6.1f us\n",
          size, contenders[i].contender->name(), s.median, s.p10, s.p90, s.median / tcp, s.median / unix_socket,
          1e6 / s.median, contenders[i].contender->ProcessorTime() * 1e6);
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
  auto pipelined = StartRedisGet(folder, RedisOver::kTcp, kPipeline);
  if (!pipelined.ok()) return pipelined.status();
  ClientOptions client_options;
  client_options.spin = std::chrono::microseconds(settings.spin);
  auto holder = Node::Start(folder, (*placed)[0], settings.flags, client_options);
  if (!holder.ok()) return holder.status();
  if (absl::Status status = PinTo(settings.getter_cpu); !status.ok()) return status;
  std::vector<std::string> flags = settings.flags;
  flags.insert(flags.end(), {"--directory", absl::StrCat("tokd@", (*placed)[0].listen.ToString())});
  auto getter = Node::Start(folder, (*placed)[1], flags, client_options);
  if (!getter.ok()) return getter.status();
  auto local = StartRedisGet(folder, RedisOver::kUnixSocket);
  if (!local.ok()) return local.status();
  if (settings.program_cpu >= 0) {
    if (absl::Status status = PinTo(settings.program_cpu); !status.ok()) return status;
  }
  std::vector<Client> many;
  for (uint32_t i = 0; i < kClients; ++i) {
    auto client = cli::AsAbsl((*getter)->NewClient());
    if (!client.ok()) return client.status();
    many.push_back(*std::move(client));
  }
  auto contenders = Operations(**holder, **getter, many, settings);
  contenders.push_back({*std::move(pipelined), settings.turn, settings.rounds});
  if (!settings.only.empty()) {
    contenders.erase(std::remove_if(contenders.begin(), contenders.end(),
                                    [&](const Entry& entry) {
                                      return std::find(settings.only.begin(), settings.only.end(),
                                                       entry.contender->name()) == settings.only.end();
                                    }),
                     contenders.end());
  }
  contenders.push_back({*std::move(redis), settings.turn, settings.rounds});
  contenders.push_back({*std::move(local), settings.turn, settings.rounds});
  return Measure(settings, contenders);
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Times what a program does with small objects, beside Redis.", "get");
  app.add_option("--sizes", settings.sizes, "of the objects, in bytes")->delimiter(',');
  app.add_option("--rounds", settings.rounds, "turns of each contender, for each size")->capture_default_str();
  app.add_option("--turn", settings.turn, "operations of one contender that follow each other")->capture_default_str();
  app.add_option("--together", settings.together, "objects that are got at once")->capture_default_str();
  app.add_option("--only", settings.only, "names of contenders; Redis is always there")->delimiter(',');
  app.add_option("--holder-cpu", settings.holder_cpu, "of the holder, the directory and Redis")->capture_default_str();
  app.add_option("--getter-cpu", settings.getter_cpu, "of the other node and this program")->capture_default_str();
  app.add_option("--program-cpu", settings.program_cpu, "of this program, where not the other node's");
  app.add_option("--spin", settings.spin, "microseconds for which this program looks for an answer before it sleeps")
      ->capture_default_str();
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

#include "lib/cli/bench/bench.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <random>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "lib/base/units.h"
#include "lib/cli/bench/bench_between.h"
#include "lib/cli/bench/timed_calls.h"
#include "lib/cli/cluster/which_daemon.h"
#include "lib/cli/common/as_absl.h"
#include "lib/cli/common/output.h"
#include "nlohmann/json.hpp"
#include "tokamak/object_id.h"

namespace tokamak::cli {

using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMaxCount = 1'000'000;
constexpr std::chrono::seconds kGetTimeout(10);

struct SizeResult {
  uint64_t size() const { return puts.size; }

  TimedCalls puts;
  TimedCalls gets;
};

class Runner final {
 public:
  Runner(const CommandContext& context, const BenchFlags& flags) : context_(context), flags_(flags) {
    std::random_device seed;
    prefix_ = absl::StrFormat("tok-bench/%08x%08x/", seed(), seed());
  }

  absl::StatusOr<std::vector<SizeResult>> Run() {
    std::vector<SizeResult> results;
    const auto began = Clock::now();
    const auto share = AsTimeout(flags_.budget).duration() / flags_.sizes.size();
    for (size_t i = 0; i < flags_.sizes.size(); ++i) {
      SizeResult& result = results.emplace_back();
      result.puts.size = result.gets.size = flags_.sizes[i];
      data_.assign(result.size(), 0x5a);
      SizeResult warming_up = result;
      if (absl::Status status = MoveOne(warming_up); !status.ok()) return status;
      const auto end = began + share * (i + 1);
      do {
        if (absl::Status status = MoveOne(result); !status.ok()) return status;
      } while (result.puts.latencies.count() < flags_.count && Clock::now() < end);
    }
    return results;
  }

 private:
  absl::Status MoveOne(SizeResult& result) {
    const absl::Status moved = PutAndGet(result);
    const absl::Status deleted = context_.undo.TakeBack();
    return moved.ok() ? deleted : moved;
  }

  absl::Status PutAndGet(SizeResult& result) {
    const std::string name = absl::StrCat(prefix_, ++number_);
    const ObjectId id = ObjectId::FromName(name);
    PutOptions options;
    options.name = name;
    const absl::Status put = context_.undo.Do(
        [&] {
          Status status;
          const double seconds = SecondsOf([&] { status = context_.client.Put(id, data_, {}, options); });
          if (status.ok()) result.puts.latencies.Add(seconds);
          return AsAbsl(status);
        },
        [this, id] { return AsAbsl(context_.client.Delete(id)); });
    if (!put.ok()) return put;
    Result<Buffer> buffer = Status(StatusCode::kUnknown, "not got");
    const double seconds = SecondsOf([&] { buffer = context_.client.Get(id, kGetTimeout); });
    if (!buffer.ok()) return AsAbsl(buffer.status());
    if (buffer->data().size() != result.size()) return absl::DataLossError(absl::StrCat(name, " has another size"));
    result.gets.latencies.Add(seconds);
    return absl::OkStatus();
  }

  const CommandContext& context_;
  const BenchFlags& flags_;
  std::string prefix_;
  uint64_t number_ = 0;
  std::vector<uint8_t> data_;
};

void Print(const CommandContext& context, const std::vector<SizeResult>& results) {
  if (context.flags.json) {
    json sizes = json::array();
    for (const SizeResult& result : results) {
      sizes.push_back({{"bytes", result.size()},
                       {"objects", result.puts.latencies.count()},
                       {"put", result.puts.ToJson()},
                       {"get", result.gets.ToJson()}});
    }
    std::cout << ToText({{"node", context.client.node()}, {"sizes", sizes}}, 2) << "\n";
    return;
  }
  std::vector<std::vector<std::string>> rows = {
      {"SIZE", "OBJECTS", "PUT p50", "p99", "BYTES/S", "GET p50", "p99", "BYTES/S"}};
  for (const SizeResult& result : results) {
    std::vector<std::string> row = {base::FormatSize(result.size()), absl::StrCat(result.puts.latencies.count())};
    for (const TimedCalls* calls : {&result.puts, &result.gets}) {
      row.push_back(calls->Time(0.5));
      row.push_back(calls->Time(0.99));
      row.push_back(calls->Rate());
    }
    rows.push_back(std::move(row));
  }
  std::cout << FormatTable(rows, {0, 1, 2, 3, 4, 5, 6, 7});
}

// True for a socket: names of nodes have no '/'.
bool IsSocket(const std::string& end) { return end.find('/') != std::string::npos; }

void AddBench(CLI::App& bench, BenchFlags& flags) {
  const auto read_sizes = [&flags](const std::vector<std::string>& texts) {
    flags.sizes.clear();
    for (const std::string& text : texts) {
      const auto size = base::ParseSize(text);
      if (!size.ok()) throw CLI::ValidationError("--sizes", std::string(size.status().message()));
      flags.sizes.push_back(*size);
    }
  };
  bench.add_option_function<std::vector<std::string>>("--sizes", read_sizes, "sizes of the objects")
      ->type_name("SIZE,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("1KiB,64KiB,1MiB");
  bench.add_option("--count", flags.count, "objects of each size, at most")
      ->check(CLI::Range(uint64_t{1}, kMaxCount))
      ->capture_default_str();
  AddDuration(bench, "--budget", flags.budget, "time for all sizes together; less where --count is reached");
  bench
      .add_option("--between", flags.between,
                  "measure between two nodes, or this one and another: their names as tok nodes lists them, or their "
                  "Unix sockets. One of them is of this machine; what comes from the other one is measured where tok "
                  "tune --serve runs there")
      ->type_name("NODE [NODE]")
      ->expected(1, 2);
}

absl::Status BenchHere(const CommandContext& context, const BenchFlags& flags) {
  for (const uint64_t size : flags.sizes) {
    if (size <= context.client.capacity()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--sizes ", base::FormatSize(size), ": the store of node ",
                                                   context.client.node(), " has ",
                                                   base::FormatSize(context.client.capacity())));
  }
  const auto results = Runner(context, flags).Run();
  if (!results.ok()) return results.status();
  Print(context, *results);
  return absl::OkStatus();
}

absl::StatusOr<Client> Connect(const std::string& socket) {
  ClientOptions options;
  options.name = "tok";
  return AsAbsl(Client::Connect(socket, options));
}

std::vector<Client> ConnectBeside(const CommandContext& context) {
  std::vector<Client> clients;
  for (const std::string& other : FindSocketsBeside(context.flags, context.socket)) {
    auto client = Connect(other);
    if (client.ok()) clients.push_back(*std::move(client));
  }
  return clients;
}

absl::Status Bench(const CommandContext& context, const BenchFlags& flags) {
  if (flags.between.empty()) return BenchHere(context, flags);
  std::vector<Client> others = ConnectBeside(context);
  std::vector<std::string> nodes;
  for (const std::string& end : flags.between) {
    nodes.push_back(end == context.socket ? context.client.node() : end);
    if (!IsSocket(nodes.back())) continue;
    auto client = Connect(end);
    if (!client.ok()) return client.status();
    nodes.back() = client->node();
    others.push_back(*std::move(client));
  }
  return BenchBetween(context, flags, std::move(nodes), others);
}

// Returns the first end if a socket: that daemon runs the command.
std::string SocketOf(const BenchFlags& flags) {
  return flags.between.size() == 2 && IsSocket(flags.between[0]) ? flags.between[0] : "";
}

}  // namespace

Command BenchCommand() {
  const auto flags = std::make_shared<BenchFlags>();
  Command command = CommandWithDaemon(
      {"bench", "measure how fast a program puts objects on a node and gets them there, or moves them between two",
       "tok bench --sizes 1KiB,1MiB --budget 1s"},
      AddBench, Bench, flags);
  command.socket = [flags] { return SocketOf(*flags); };
  return command;
}

}  // namespace tokamak::cli

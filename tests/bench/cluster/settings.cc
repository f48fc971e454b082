#include "tests/bench/cluster/settings.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "lib/base/units.h"

namespace tokamak::bench {

namespace {

constexpr char kAbout[] =
    "Measures how fast the nodes of a cluster get objects of each other. Every MPI rank is one node (store, transport "
    "and\n"
    "directory client, wired as tokd wires them); rank 0 serves the directory. MPI places the ranks and keeps them in "
    "step:\n"
    "no byte that is measured goes through it.";
constexpr char kExample[] =
    "Examples (ci/cluster builds and runs it with the options that suit one machine):\n"
    "  mpirun -np 4 bazel-bin/tests/bench/cluster/cluster --patterns all-to-all --sizes 64,1MiB --csv out.csv\n"
    "  mpirun -np 1 --host a cluster --device ibv:mlx5_0 : -np 1 --host b cluster --device ibv:mlx5_1\n"
    "A repetition begins when all ranks have left a barrier and ends when the slowest has its last object; every byte "
    "is\n"
    "compared afterwards, and a wrong one ends the run. Each repetition moves new objects, unless --keep is given.\n"
    "Exit codes: 0, 2 after a wrong flag, 1 after any other trouble.";

constexpr char kAboutSimulated[] =
    "The cluster benchmark in virtual time: every rank is a simulated host on one switch, with the costs of a preset "
    "for its\n"
    "calls, registrations and copies. The same store, transport, driver and report as under MPI; sockets are a model "
    "of "
    "TCP\n"
    "(tests/bench/cluster/virtual/simulated_streams.h). Times are computed: the same in each run with a seed.";
constexpr char kExampleSimulated[] =
    "Example:\n"
    "  simulated --rate 200Gb/s --patterns all-to-all --sizes 64KiB,4MiB --registration on_demand --json out.json\n"
    "Exit codes: 0, 2 after a wrong flag, 1 after any other trouble.";

// The values of --protocols, in the order in which results are shown.
const std::vector<std::string> kProtocols = {"eager",           "read",        "write", "policy", "socket",
                                             "socket-original", "socket-tuned"};

// As given, before they are read.
struct Texts {
  std::vector<std::string> patterns = {"one-to-one", "one-to-many", "many-to-one", "all-to-all"};
  std::vector<std::string> sizes = {"1", "64", "1KiB", "16KiB", "64KiB", "256KiB", "1MiB", "16MiB"};
  std::string memory = "0", chunk_size = "1MiB", timeout = "60s", budget = "5s";
  double precision = 5;  // per cent
};

template <typename T>
void AddOnce(std::vector<T>* all, const T& one) {
  if (std::find(all->begin(), all->end(), one) == all->end()) all->push_back(one);
}

absl::Status Named(const char* flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

absl::Status Check(const Texts& texts, Settings& settings) {
  for (const std::string& text : texts.patterns) {
    const auto pattern = ParsePattern(text);
    if (!pattern.ok()) return Named("--patterns", pattern.status());
    AddOnce(&settings.patterns, *pattern);
  }
  for (const std::string& text : texts.sizes) {
    const auto size = base::ParseSize(text);
    if (!size.ok()) return Named("--sizes", size.status());
    if (*size < kSmallestObject || *size > kLargestObject) {
      return absl::InvalidArgumentError(
          absl::StrCat("--sizes: '", text, "' is not within 1 B and ", base::FormatSize(kLargestObject)));
    }
    AddOnce(&settings.sizes, *size);
  }
  const auto memory = base::ParseSize(texts.memory);
  if (!memory.ok()) return Named("--memory", memory.status());
  settings.memory = *memory;
  const auto chunk = base::ParseSize(texts.chunk_size);
  if (!chunk.ok()) return Named("--chunk-size", chunk.status());
  settings.chunk_size = *chunk;
  const auto timeout = base::ParseDuration(texts.timeout);
  if (!timeout.ok()) return Named("--timeout", timeout.status());
  settings.timeout = *timeout;
  const auto budget = base::ParseDuration(texts.budget);
  if (!budget.ok()) return Named("--budget", budget.status());
  settings.stop.seconds = budget->seconds();
  settings.stop.precision = texts.precision / 100;
  if (settings.stop.least > settings.stop.most) {
    return absl::InvalidArgumentError("--repetitions is below --least-repetitions: raise it or lower the other");
  }
  return absl::OkStatus();
}

uint64_t Needed(const Plan& plan, uint32_t ranks) {
  // Beside the objects: pieces of memory between them, and what peers have not given back yet.
  constexpr uint64_t kBeside = 32 << 20;
  const uint64_t objects = MostBytesOfARank(plan.cases, ranks);
  return objects + objects / 8 + kBeside;
}

void AddMachines(CLI::App* app, Settings* settings) {
  app->add_option("--device", settings->devices,
                  "as tokd --device: soft:udp@IP, ibv:NAME; several are taken in turn by the ranks of a host, which "
                  "listen some ports apart on it. Unless given, software NICs on 127.0.0.1 and up, for one host")
      ->delimiter(',');
  app->add_option("--port", settings->port, "of the first node on each device")
      ->check(CLI::Range(1024, 65000))
      ->capture_default_str();
  app->add_option("--detection", settings->detection,
                  "how nodes find completions: busy (spin), event (sleep), adaptive:TIME (spin, then sleep), or auto: "
                  "adaptive:20us from 8 processors on, else event")
      ->capture_default_str();
  app->add_option("--congestion", settings->congestion, "of software NICs, as tokd --congestion");
}

void AddSimulatedPlace(CLI::App* app, Settings* settings) {
  settings->costs = "cx6-200g";
  settings->rate = "100Gb/s";
  app->add_option("--ranks", settings->ranks, "hosts")->check(CLI::Range(2, 250))->capture_default_str();
  app->add_option("--rate", settings->rate, "of each host's cable, such as 100Gb/s")->capture_default_str();
  app->add_option("--policy", settings->policy,
                  "the table by which `policy` chooses, such as eager:8KiB,write; unless given, the built-in one of "
                  "hardware");
  app->add_option("--costs", settings->costs, "of the hosts: a preset of sim/costs/presets.json, or of a FILE like it")
      ->capture_default_str();
}

}  // namespace

ParsedSettings ParseSettings(int argc, const char* const* argv, Place place) {
  ParsedSettings parsed;
  Settings& settings = parsed.settings;
  Texts texts;
  settings.protocols = {"eager", "read", "write", "policy", "socket"};
  const bool simulated = place == Place::kSimulation;
  const std::string program = simulated ? "simulated" : "cluster";
  CLI::App app(simulated ? kAboutSimulated : kAbout, program);
  app.footer(simulated ? kExampleSimulated : kExample);
  app.add_option("--patterns", texts.patterns,
                 "one-to-one (rank 1 gets from rank 0), one-to-many (all others from rank 0, an object each), "
                 "many-to-one (rank 0 from all others), all-to-all")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--sizes", texts.sizes, "bytes of one object, from 1 to 1GiB")->delimiter(',')->capture_default_str();
  app.add_option("--protocols", settings.protocols,
                 "eager, read, write, policy (what the built-in table chooses by size), and for comparison TCP: "
                 "socket-original (as Plasma's manager: 4 KiB with each turn of the loop), socket-tuned (large writes "
                 "from and into the objects' memory), or socket for both")
      ->delimiter(',')
      ->check(CLI::IsMember(kProtocols))
      ->capture_default_str();
  simulated ? AddSimulatedPlace(&app, &settings) : AddMachines(&app, &settings);
  app.add_option("--memory", texts.memory, "of each store; 0: what the cases need")->capture_default_str();
  app.add_option("--registration", settings.registration,
                 "how stores are registered: arena (all at once), on_demand (for each transfer) or cached (blocks of "
                 "the store when they are first used, and kept)")
      ->check(CLI::IsMember({"arena", "on_demand", "cached"}))
      ->capture_default_str();
  app.add_option("--engines", settings.engines, "threads of each node for bulk; 0: everything on its control loop")
      ->check(CLI::Range(0, 15))
      ->capture_default_str();
  app.add_option("--bulk-queue-pairs", settings.bulk_queue_pairs, "queue pairs for large objects, to each peer")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--chunk-size", texts.chunk_size, "bytes of one READ or WRITE request")->capture_default_str();
  app.add_option("--depth", settings.chunks_in_flight, "chunks of one transfer that are under way at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--keep", settings.keep,
               "get the same objects in all repetitions of a case, as when many ask for one, rather than new ones");
  app.add_option("--warm-up", settings.warm_up, "repetitions of each case that are not counted")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--precision", texts.precision,
                 "a case is over when the 95 % confidence interval of its median is within this many per cent of it, "
                 "to each side")
      ->check(CLI::Range(0.1, 100.0))
      ->capture_default_str();
  app.add_option("--least-repetitions", settings.stop.least, "before that is looked at")
      ->check(CLI::Range(static_cast<int>(kFewestForInterval), 1'000'000))
      ->capture_default_str();
  app.add_option("--repetitions", settings.stop.most, "of a case, at most")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--budget", texts.budget,
                 "time for one case, filling and comparing included; the repetition that passes it is the last")
      ->capture_default_str();
  app.add_option("--timeout", texts.timeout, "of one object: then the run fails")->capture_default_str();
  app.add_option("--seed", settings.seed, "of the order of cases and of the objects' bytes")->capture_default_str();
  app.add_option("--csv", settings.csv, "file for the results, written by rank 0");
  app.add_option("--json", settings.json, "the same as JSON, with the settings");
  std::ostringstream out, error;
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    app.exit(asked, out, error);
    parsed.text = out.str();
    return parsed;
  } catch (const CLI::ParseError& wrong) {
    parsed.text = absl::StrCat(program, ": ", wrong.what(), " (see ", program, " --help)\n");
    parsed.exit_code = 2;
    return parsed;
  }
  if (const absl::Status status = Check(texts, settings); !status.ok()) {
    parsed.text = absl::StrCat(program, ": ", status.message(), "\n");
    parsed.exit_code = 2;
    return parsed;
  }
  parsed.run = true;
  return parsed;
}

std::vector<Contender> ContendersOf(const Settings& settings) {
  const auto wanted = [&](const std::string& protocol) {
    return std::find(settings.protocols.begin(), settings.protocols.end(), protocol) != settings.protocols.end();
  };
  std::vector<Contender> contenders;
  for (const char* protocol : {"eager", "read", "write", "policy"}) {
    if (wanted(protocol)) contenders.push_back({protocol, settings.registration});
  }
  for (const char* variant : {"original", "tuned"}) {
    if (wanted("socket") || wanted(absl::StrCat("socket-", variant))) contenders.push_back({"socket", variant});
  }
  return contenders;
}

absl::StatusOr<Plan> MakePlan(const Settings& settings, uint32_t ranks) {
  if (ranks < 2) {
    return absl::InvalidArgumentError("one rank has nobody to get from: run it with mpirun -np 2 or more");
  }
  Plan plan;
  plan.contenders = ContendersOf(settings);
  plan.cases = ShuffledCases(settings.patterns, settings.sizes, plan.contenders.size(), base::Random(settings.seed));
  plan.keep = settings.keep;
  plan.warm_up = settings.warm_up;
  plan.stop = settings.stop;
  plan.timeout = settings.timeout;
  plan.seed = settings.seed;
  if (const uint64_t needed = Needed(plan, ranks); settings.memory != 0 && settings.memory < needed) {
    return absl::InvalidArgumentError(absl::StrCat("--memory: ", base::FormatSize(settings.memory),
                                                   " cannot hold what a rank of ", ranks, " gives and gets: give ",
                                                   base::FormatSize(needed), ", smaller --sizes or fewer ranks"));
  }
  return plan;
}

uint64_t MemoryOfARank(const Settings& settings, const Plan& plan, uint32_t ranks) {
  return settings.memory != 0 ? settings.memory : Needed(plan, ranks);
}

}  // namespace tokamak::bench

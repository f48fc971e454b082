// The flags of the cluster benchmark, read and checked, the same on every rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/cluster/plan.h"

namespace tokamak::bench {

constexpr uint64_t kSmallestObject = 1;
constexpr uint64_t kLargestObject = uint64_t{1} << 30;

// The place of the ranks.
enum class Place {
  kMachines,    // each a process, placed by MPI
  kSimulation,  // each a host in virtual time
};

struct Settings {
  std::vector<Pattern> patterns;
  std::vector<uint64_t> sizes;
  std::vector<std::string> protocols;  // as given; Contenders() says what they stand for
  // Of the nodes, as tokd takes them.
  std::vector<std::string> devices;
  uint16_t port = 7100;
  uint64_t memory = 0;  // bytes; 0: what the cases need
  std::string registration = "arena";
  std::string detection = "auto";
  uint32_t engines = 1;
  uint32_t bulk_queue_pairs = 1;
  uint64_t chunk_size = 1 << 20;
  uint32_t chunks_in_flight = 8;
  std::string congestion;
  // Simulated hosts and their network; on machines MPI says how many ranks there are.
  uint32_t ranks = 8;
  std::string costs;
  std::string rate;
  std::string policy;  // a table's text (lib/transport/policy/policy.h); empty: hardware's
  // Of the measurement.
  bool keep = false;
  uint32_t warm_up = 2;
  StopRule stop;
  base::Duration timeout = base::Seconds(60);
  uint64_t seed = 1;
  // Files of rank 0.
  std::string csv;
  std::string json;
};

// The decision for main: run, or leave with an exit code (0 after --help, 2 after a wrong flag).
// `text` is to be printed; empty: nothing.
struct ParsedSettings {
  bool run = false;
  int exit_code = 0;
  std::string text;
  Settings settings;
};
ParsedSettings ParseSettings(int argc, const char* const* argv, Place place = Place::kMachines);

// In the order of the protocols; each once.
std::vector<Contender> ContendersOf(const Settings& settings);

// kInvalidArgument, naming the remedy: too few ranks, or --memory that cannot hold a case.
absl::StatusOr<Plan> MakePlan(const Settings& settings, uint32_t ranks);

// Memory of each node's store, in bytes. After MakePlan.
uint64_t MemoryOfARank(const Settings& settings, const Plan& plan, uint32_t ranks);

}  // namespace tokamak::bench

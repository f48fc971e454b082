// Demo is the main job in one command: a cluster of three tokd on this machine moves real files by
// every protocol, compares hashes, survives a holder killed in the middle of transfers, and prints
// figures.
//
// Thread rule: one; it runs for minutes at most and always cleans up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokamak::cli {

struct DemoSettings {
  std::string folder;                               // for the cluster's state; made and removed
  std::vector<std::string> sources = {"/usr/lib"};  // where files are searched
  uint64_t least_bytes = uint64_t{200} << 20;       // bytes to put at least, if the sources have them
  uint64_t memory = uint64_t{1} << 30;              // bytes of each node's store
  std::vector<std::string> devices;                 // of the nodes, see lib/cli/cluster/places.h
  std::vector<std::string> tokd_flags;
  bool json = false;
};

// Gets of one size class by one protocol. Times in seconds.
struct DemoRow {
  std::string size_class;
  std::string protocol;
  uint64_t gets = 0;
  uint64_t bytes = 0;
  double p50 = 0;
  double p99 = 0;
  double bandwidth = 0;  // bytes per second
};

struct DemoResult {
  std::vector<DemoRow> rows;
  uint64_t verified = 0;    // objects with equal hashes
  uint64_t mismatches = 0;  // objects with other hashes
  std::string killed;       // the killed node, and how the get went on
};

// Prints its progress. An error says what failed; a mismatch is no error but a result.
absl::StatusOr<DemoResult> RunDemo(const DemoSettings& settings);

// The table, and as the last line "verified N objects, M mismatches".
std::string FormatDemo(const DemoResult& result);
std::string DemoToJson(const DemoResult& result);

}  // namespace tokamak::cli

// Demo is the main job in one command: three tokd on this machine move real files by every
// protocol, compare hashes, survive a holder killed amid transfers, and give figures.
//
// Thread rule: one; it runs for minutes at most and always cleans up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokamak::cli {

struct DemoSettings {
  std::string folder;                               // of the cluster; made and removed
  std::vector<std::string> sources = {"/usr/lib"};  // where files are searched
  uint64_t least_bytes = uint64_t{200} << 20;       // to put at least, if found
  uint64_t memory = uint64_t{1} << 30;              // bytes of each store
  std::vector<std::string> devices;                 // of the nodes: places.h
  std::vector<std::string> tokd_flags;
  bool json = false;
};

// Times in seconds.
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
  uint64_t verified = 0;
  uint64_t mismatches = 0;
  std::string killed;  // the killed node, and how the get went on
};

// Prints progress. A mismatch is a result, not an error.
absl::StatusOr<DemoResult> RunDemo(const DemoSettings& settings);

// The last line: "verified N objects, M mismatches".
std::string FormatDemo(const DemoResult& result);
std::string DemoToJson(const DemoResult& result);

}  // namespace tokamak::cli

// Demo is the main job in one command: a cluster of three tokd on this machine moves real files
// between them by every protocol, hashes are compared, a holder is killed in the middle of
// transfers, and the figures are printed.
//
// Thread rule: one; it runs for minutes at most and cleans up after itself, whatever happened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tokamak::cli {

struct DemoSettings {
  std::string folder;                               // for the cluster's state; made and removed
  std::vector<std::string> sources = {"/usr/lib"};  // where files are looked for
  uint64_t least_bytes = uint64_t{200} << 20;       // put at least so much, if the sources have it
  uint64_t memory = uint64_t{1} << 30;              // bytes of each node's store
  std::vector<std::string> devices;                 // of the nodes, see lib/cli/cluster/places.h
  std::vector<std::string> tokd_flags;
  bool json = false;
};

// How the gets of one size class went under one protocol. Times in seconds.
struct DemoRow {
  std::string size_class;
  std::string protocol;
  uint64_t gets = 0;
  uint64_t bytes = 0;
  double p50 = 0;
  double p99 = 0;
  double bandwidth = 0;  // bytes in a second
};

struct DemoResult {
  std::vector<DemoRow> rows;
  uint64_t verified = 0;    // objects whose hash was compared and equal
  uint64_t mismatches = 0;  // and not
  std::string killed;       // the node that was killed, and how it went on
};

// Prints what it does as it goes along. An error says what failed; a mismatch is no error here, but
// a result.
absl::StatusOr<DemoResult> RunDemo(const DemoSettings& settings);

// The table, and as the last line "verified N objects, M mismatches".
std::string FormatDemo(const DemoResult& result);
std::string DemoToJson(const DemoResult& result);

}  // namespace tokamak::cli

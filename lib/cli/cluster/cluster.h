// Cluster is a Tokamak of several tokd on this machine, for trying things out: `tok up` starts one,
// `tok down` stops it.
//
// Where node i listens and which device it has, lib/cli/cluster/places.h says; its socket, log and pid are
// in the state folder. The folder is the only memory between commands: cluster.json says what runs.
// Processes are told apart from strangers that took their pid by the time at which they started.
// Nothing in the folder but what a cluster made is touched.
// Thread rule: one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/cli/cluster/places.h"

namespace tokamak::cli {

struct ClusterSettings {
  std::string folder;  // the state folder, as an absolute path: later commands are given elsewhere
  uint32_t nodes = 3;
  std::string memory = "512MiB";   // of each
  std::string directory = "tokd";  // "tokd": the first node serves it; "redis": a private redis-server
  Places places;
  int interrupted = -1;            // a descriptor that is readable once the start shall be given up; none unless given
  bool end_with_us = false;        // however this program ends, its cluster ends with it; StopCluster tidies up
  std::vector<std::string> extra;  // flags for each tokd, as they are
};

struct ClusterProcess {
  std::string name;  // "node1", "redis"
  pid_t pid = 0;
  uint64_t started = 0;  // clock ticks since boot, from /proc: with the pid it names one process for good
  std::string socket;
};

struct Cluster {
  std::vector<ClusterProcess> nodes;
  std::vector<ClusterProcess> helpers;  // redis
  std::vector<std::string> folders;     // above the state folder that were made for it, the outermost first
};

// $XDG_RUNTIME_DIR/tokamak, or /tmp/tokamak-UID.
std::string DefaultFolder();

// Starts all, each once the one before is ready, and makes the state folder, with those above it
// that are missing. On an error nothing is left running, nor of what was made. kAlreadyExists: one
// runs already. kCancelled: interrupted.
absl::StatusOr<Cluster> StartCluster(const ClusterSettings& settings);

// What runs, from the folder. kNotFound: nothing was started there. kDataLoss: what the folder says
// is damaged.
absl::StatusOr<Cluster> LoadCluster(const std::string& folder);

// Stops all (SIGTERM, and after a time SIGKILL) and removes what they left, and the folders if that
// was all. Returns how many processes were stopped.
absl::StatusOr<uint32_t> StopCluster(const std::string& folder);

}  // namespace tokamak::cli

// Cluster is several tokd on this machine, for trials: `tok up` starts one, `tok down` stops it.
//
// The state folder has sockets, logs, the secret by which the nodes know each other (unless `extra`
// decides otherwise), and cluster.json, the only memory between commands; start
// times tell its processes from strangers with a reused pid. Only a cluster's files there are
// touched. Addresses: places.h. Thread rule: one.
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
  std::string folder;  // state folder, absolute
  uint32_t nodes = 3;
  std::string memory = "512MiB";   // of each
  std::string directory = "tokd";  // "tokd": the first node; "redis": a private redis-server
  Places places;
  int interrupted = -1;            // readable: give up the start; -1: none
  bool end_with_us = false;        // the cluster ends with this program in any case; StopCluster tidies up
  std::vector<std::string> extra;  // flags for each tokd, as they are
};

struct ClusterProcess {
  std::string name;
  pid_t pid = 0;
  uint64_t started = 0;  // clock ticks since boot, as in /proc; with the pid the identity
  std::string socket;
};

struct Cluster {
  std::vector<ClusterProcess> nodes;
  std::vector<ClusterProcess> helpers;  // redis
  std::vector<std::string> folders;     // made above the state folder; outermost first
};

// $XDG_RUNTIME_DIR/tokamak, or /tmp/tokamak-UID.
std::string DefaultFolder();

// Makes the folders and starts the processes, each when the one before is ready. An error leaves
// nothing. kAlreadyExists: one runs. kCancelled: interrupted.
absl::StatusOr<Cluster> StartCluster(const ClusterSettings& settings);

// Reads the folder. kNotFound: nothing was started there. kDataLoss: its file is damaged.
absl::StatusOr<Cluster> LoadCluster(const std::string& folder);

// Stops all (SIGTERM, later SIGKILL), removes their files, and folders left empty. Returns the
// number of processes.
absl::StatusOr<uint32_t> StopCluster(const std::string& folder);

}  // namespace tokamak::cli

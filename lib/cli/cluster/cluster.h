// Cluster is a Tokamak of several tokd on this machine, for trials: `tok up` starts one, `tok down`
// stops it.
//
// lib/cli/cluster/places.h gives each node its address and device; its socket, log and pid are in
// the state folder, the only memory between commands: cluster.json lists the processes. Their start
// times tell them from strangers with a reused pid. Only files of a cluster in the folder are
// touched. Thread rule: one.
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
  std::string folder;  // the state folder, an absolute path
  uint32_t nodes = 3;
  std::string memory = "512MiB";   // of each
  std::string directory = "tokd";  // "tokd": the first node serves it; "redis": a private redis-server
  Places places;
  int interrupted = -1;            // descriptor that becomes readable to give up the start; -1: none
  bool end_with_us = false;        // true if the cluster ends with this program, however it ends; StopCluster tidies up
  std::vector<std::string> extra;  // flags for each tokd, as they are
};

struct ClusterProcess {
  std::string name;  // "node1", "redis"
  pid_t pid = 0;
  uint64_t started = 0;  // clock ticks since boot, from /proc: with the pid it identifies the process
  std::string socket;
};

struct Cluster {
  std::vector<ClusterProcess> nodes;
  std::vector<ClusterProcess> helpers;  // redis
  std::vector<std::string> folders;     // above the state folder, made for it; outermost first
};

// $XDG_RUNTIME_DIR/tokamak, or /tmp/tokamak-UID.
std::string DefaultFolder();

// Makes the state folder, with missing ones above it, and starts the processes, each once the one
// before is ready. After an error none of them, nor anything made, is left. kAlreadyExists: one
// runs already. kCancelled: interrupted.
absl::StatusOr<Cluster> StartCluster(const ClusterSettings& settings);

// Reads the folder. kNotFound: nothing was started there. kDataLoss: the folder's file is damaged.
absl::StatusOr<Cluster> LoadCluster(const std::string& folder);

// Stops all (SIGTERM, and after a time SIGKILL) and removes their files, and the folders if then
// empty. Returns the number of stopped processes.
absl::StatusOr<uint32_t> StopCluster(const std::string& folder);

}  // namespace tokamak::cli

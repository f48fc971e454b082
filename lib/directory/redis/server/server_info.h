// ServerInfo is the part of a Redis server's INFO that matters to the directory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/directory/redis/server/target.h"

namespace tokamak::directory::redis {

struct ServerInfo {
  std::string version;  // "7.0.15"
  std::string mode;     // "standalone", "cluster", "sentinel"
  std::string role;     // "master", "slave"
  std::string master;   // of a replica: "10.0.0.1:6379"
  std::string run_id;
  bool loading = false;     // still reads its data
  uint64_t max_memory = 0;  // bytes; 0: no limit
  std::string max_memory_policy;
  uint64_t evicted_keys = 0;
  uint64_t replicas = 0;
  bool needs_replicas_to_write = false;

  // Leaves fields empty that `text` lacks.
  static ServerInfo Parse(absl::string_view text);

  // OK if it can keep the directory; else one line with the remedy.
  absl::Status Check(Target::Kind kind) const;

  // Each in one line with its remedy.
  std::vector<std::string> Dangers() const;
};

}  // namespace tokamak::directory::redis

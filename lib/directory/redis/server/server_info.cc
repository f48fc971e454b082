#include "lib/directory/redis/server/server_info.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tokamak::directory::redis {
namespace {

constexpr int kOldestVersion = 5;

uint64_t NumberOf(absl::string_view text) {
  uint64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

}  // namespace

ServerInfo ServerInfo::Parse(absl::string_view text) {
  ServerInfo info;
  std::string master_host, master_port;
  for (const absl::string_view line : absl::StrSplit(text, absl::ByAnyChar("\r\n"), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> field = absl::StrSplit(line, absl::MaxSplits(':', 1));
    const auto [name, value] = field;
    if (name == "redis_version") info.version = std::string(value);
    if (name == "redis_mode" || name == "server_mode") info.mode = std::string(value);  // Valkey's is the second
    if (name == "role") info.role = std::string(value);
    if (name == "master_host") master_host = std::string(value);
    if (name == "master_port") master_port = std::string(value);
    if (name == "run_id") info.run_id = std::string(value);
    if (name == "loading") info.loading = value == "1";
    if (name == "maxmemory") info.max_memory = NumberOf(value);
    if (name == "maxmemory_policy") info.max_memory_policy = std::string(value);
    if (name == "evicted_keys") info.evicted_keys = NumberOf(value);
    if (name == "connected_slaves") info.replicas = NumberOf(value);
    if (name == "min_slaves_good_slaves") info.needs_replicas_to_write = true;  // only present if set
  }
  if (!master_host.empty()) info.master = absl::StrCat(master_host, ":", master_port);
  return info;
}

absl::Status ServerInfo::Check(Target::Kind kind) const {
  int major = 0;
  const std::vector<absl::string_view> numbers = absl::StrSplit(version, '.');
  if (!absl::SimpleAtoi(numbers[0], &major)) {
    return absl::UnavailableError("it does not say its version (INFO): is it a Redis server?");
  }
  if (major < kOldestVersion) {
    return absl::UnavailableError(
        absl::StrCat("it is Redis ", version, ": the directory needs Redis ", kOldestVersion, " or later"));
  }
  if (mode == "sentinel") {
    return absl::UnavailableError("a Sentinel listens there: write --directory sentinel://HOST:PORT,.../MASTER");
  }
  if (kind != Target::Kind::kCluster && mode == "cluster") {
    return absl::UnavailableError("it is part of a Redis Cluster: write --directory cluster://HOST:PORT,...");
  }
  if (kind == Target::Kind::kCluster && mode != "cluster") {
    return absl::UnavailableError("it is no part of a Redis Cluster: write --directory redis://HOST:PORT");
  }
  if (kind == Target::Kind::kServer && role == "slave") {
    return absl::UnavailableError(
        absl::StrCat("it is a read-only replica of ", master,
                     ": name that one, or the Sentinels: --directory sentinel://HOST,.../MASTER"));
  }
  if (kind == Target::Kind::kSentinel && role == "slave") {
    return absl::UnavailableError("it is still a replica: a failover is under way, or the Sentinels disagree");
  }
  if (loading) return absl::UnavailableError("it still reads its data: wait");
  return absl::OkStatus();
}

std::vector<std::string> ServerInfo::Dangers() const {
  std::vector<std::string> dangers;
  if (max_memory > 0 && max_memory_policy != "noeviction") {
    dangers.push_back(absl::StrCat("the server may evict what the directory knows (maxmemory-policy ",
                                   max_memory_policy, "): set maxmemory-policy noeviction"));
  }
  if (replicas > 0 && !needs_replicas_to_write) {
    dangers.push_back(
        "a master that is cut off from its replicas goes on accepting what a failover loses: set "
        "min-replicas-to-write 1 and min-replicas-max-lag 2");
  }
  return dangers;
}

}  // namespace tokamak::directory::redis

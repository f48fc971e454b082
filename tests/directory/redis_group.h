// Several Redis servers of a test's own, on ports of the loopback: a master with replicas and
// Sentinels that watch over them, or a small Redis Cluster.
//
// Its constructor waits until its servers know each other. They end with it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/directory/redis/server/target.h"
#include "lib/os/process/child_process.h"
#include "tests/support/short_folder.h"

namespace tokamak::directory::redis {

using Arguments = std::vector<std::string>;

// A port of 127.0.0.1 that was free a moment ago.
uint16_t FreePort();

enum class RedisRole { kServer, kSentinel };

// One server, or a Sentinel, on a port.
class RedisOnPort final {
 public:
  // `arguments` follow the program's name (redis_program.h). Starts.
  RedisOnPort(RedisRole role, Arguments arguments);

  void Start();
  void Kill() { process_.reset(); }
  void Freeze();
  void Thaw();
  bool started() const { return process_ != nullptr; }
  uint16_t port() const { return port_; }
  const std::string& folder() const { return folder_.path(); }
  std::string log() const;

  // Returns its answer, waiting for it; nested answers with spaces between. kUnavailable: there is
  // no connection; kUnknown: an error of its own.
  absl::StatusOr<std::string> Ask(const Arguments& command) const;
  // Asks again and again until the answer has `part`; false after a minute.
  bool Await(const Arguments& command, const std::string& part) const;

 private:
  const RedisRole role_;
  const Arguments arguments_;
  const testing_support::ShortFolder folder_;
  const uint16_t port_ = FreePort();
  std::unique_ptr<os::ChildProcess> process_;
};

// Three servers and three Sentinels, as docs/redis.md has them, except that a master that is silent
// for half a second is replaced.
class RedisGroup final {
 public:
  static constexpr size_t kServers = 3;
  static constexpr size_t kSentinels = 3;

  explicit RedisGroup(const Arguments& arguments = {});

  Target target() const { return *Target::Parse(directory()); }
  std::string directory() const;  // as --directory

  // As more than half of the Sentinels say; kServers: they do not agree.
  size_t Master() const;
  // Waits until that is another than `before`.
  bool AwaitMasterOtherThan(size_t before) const;
  // Every server but the master follows it.
  bool AwaitWhole() const;

  RedisOnPort& server(size_t i) { return *servers_[i]; }
  RedisOnPort& sentinel(size_t i) { return *sentinels_[i]; }

 private:
  std::vector<std::unique_ptr<RedisOnPort>> servers_;
  std::vector<std::unique_ptr<RedisOnPort>> sentinels_;
};

// Three masters and a replica of each, as a Redis Cluster: a master that is silent for a second is
// replaced.
class RedisCluster final {
 public:
  static constexpr size_t kServers = 6;

  explicit RedisCluster(const Arguments& arguments = {});

  Target target() const { return *Target::Parse(directory()); }
  std::string directory() const;

  // Which server has the slot of `key`, as `witness` says; kServers: it says that nobody has.
  size_t OwnerOf(const std::string& key, size_t witness) const;
  // Waits until all servers agree who has it, and that it is another than `before`.
  bool AwaitOwnerOtherThan(const std::string& key, size_t before) const;

  // Moves the slot of `key` with all that is in it to the master `to`, in steps as redis-cli does.
  // Between the two halves of the keys `halfway` runs.
  void MoveSlot(const std::string& key, size_t to, const std::function<void()>& halfway);

  RedisOnPort& server(size_t i) { return *servers_[i]; }

 private:
  std::string IdOf(size_t i) const;

  std::vector<std::unique_ptr<RedisOnPort>> servers_;
};

}  // namespace tokamak::directory::redis

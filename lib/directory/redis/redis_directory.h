// RedisDirectory keeps the directory in a Redis server, for clusters that have one: it survives any node of ours.
//
// Every step is a Lua script, so the server does it as one (scripts.h; docs/directory.md draws the keys). A lease is the time to
// live of a node's key. Who waits for an object hears of it through a channel (waiting.h).
// A server that was restarted may have lost what was announced since its last snapshot: the next Join of each node then says
// kEntered, so that everything is announced again.
// Thread rule: its loop.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/directory/directory.h"
#include "lib/directory/redis/connection.h"
#include "lib/directory/redis/waiting.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::directory::redis {

struct Options {
  ConnectionOptions connection;
  std::string prefix = "tokamak";  // of all keys: clusters that share a server have different ones
};

class RedisDirectory final : public Directory {
 public:
  // `loop` must outlive it. Connects in the background, now and whenever the connection is lost. kInvalidArgument: the address
  // or the prefix makes no sense.
  static absl::StatusOr<std::unique_ptr<RedisDirectory>> Open(os::EpollLoop& loop, const Options& options);

  void Join(const NodeInfo& node, base::Duration lease, base::Duration deadline, JoinCallback done) override;
  void Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) override;
  void Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const NodeId& node,
                base::Duration deadline, StatusCallback done) override;
  void Withdraw(const base::ObjectId& id, const NodeId& node, base::Duration deadline, StatusCallback done) override;
  void Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline, LocateCallback done) override;
  void Nodes(base::Duration deadline, NodesCallback done) override;

  uint64_t connection_attempts() const { return connection_->attempts(); }

 private:
  RedisDirectory(os::EpollLoop& loop, const Options& options) : options_(options), answers_(loop) {}
  void Began();
  void Run(const char* script, std::vector<std::string> arguments, base::Duration deadline, Connection::Callback done);
  void RunForStatus(const char* script, std::vector<std::string> arguments, base::Duration deadline,
                    StatusCallback done);
  void Ask(const base::ObjectId& id, base::Duration deadline, LocateCallback done);
  absl::StatusOr<JoinResult> Joined(const NodeId& id, const Reply& reply);

  const Options options_;
  Answers answers_;
  std::string server_run_;   // the run_id of the server that we know
  std::set<NodeId> joined_;  // under that run
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Waiting> waiting_;
};

}  // namespace tokamak::directory::redis

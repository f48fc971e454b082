// RedisDirectory keeps the directory in a Redis server, for clusters that have one: it survives any
// node of ours.
//
// Every step is one atomic Lua script (scripts.h; docs/directory.md draws the keys). A restarted
// server, or a replica after a failover, may lack what was accepted last: the next Join of each
// node enters it anew, so that it announces everything again. Lost keys are found by Verify. A
// replaced master must not renew a lease, or report an object as deleted: both count only once the
// Finder has confirmed the master (docs/redis.md).
// Thread rule: its loop.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/directory/directory.h"
#include "lib/directory/redis/server/dialer.h"
#include "lib/directory/redis/server/finder.h"
#include "lib/directory/redis/server/secret.h"
#include "lib/directory/redis/server/server_connection.h"
#include "lib/directory/redis/server/server_watch.h"
#include "lib/directory/redis/server/target.h"
#include "lib/directory/redis/server/tls.h"
#include "lib/directory/redis/waiting.h"
#include "lib/os/epoll_loop.h"

namespace tokamak::directory::redis {

struct Options {
  Target target;
  Secret password;               // of the target's user
  Credentials sentinel;          // of the Sentinels
  TlsOptions tls;                // if the target asks for TLS
  ConnectionOptions connection;  // except credentials and database
  // Prefix of all keys, different for each cluster on a server: as a node's name, without colons.
  std::string prefix = "tokamak";
  base::Random random = base::Random(0);  // different for each node, to spread reconnects

  // After a server's start, while it cannot know who holds what.
  base::Duration recovery = base::Seconds(10);

  size_t tombstones = kMaxTombstones;  // at least 1; the same for all clients
};

class RedisDirectory final : public Directory {
 public:
  // kInvalidArgument: the prefix, or a file for TLS. kFailedPrecondition: a password's file cannot
  // be read.
  static absl::Status Check(const Options& options);

  // Connects in the background, again after each loss. `loop` must outlive it. Errors as Check.
  static absl::StatusOr<std::unique_ptr<RedisDirectory>> Open(os::EpollLoop& loop, const Options& options);

  base::Pending Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) override;
  base::Pending Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) override;
  base::Pending Update(const NodeId& node, absl::string_view as_of, absl::Span<const directory::Update> updates,
                       base::Duration deadline, UpdateCallback done) override;
  base::Pending Locate(const LocateRequest& request, LocateCallback done) override;
  base::Pending Delete(const DeleteRequest& request, base::Duration deadline, DeleteCallback done) override;
  base::Pending Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions, base::Duration deadline,
                       VerifyCallback done) override;
  base::Pending Held(const NodeId& node, const std::string& after, base::Duration deadline, HeldCallback done) override;
  base::Pending Roster(base::Duration deadline, RosterCallback done) override;

  uint64_t connection_attempts() const { return connection_->attempts(); }
  size_t waiting() const { return waiting_.waiting(); }

 private:
  enum Step : size_t {
    kMeetStep,
    kJoinStep,
    kLeaveStep,
    kUpdateStep,
    kLocateStep,
    kDeleteStep,
    kVerifyStep,
    kHeldStep,
    kRosterStep,
    kSteps
  };
  // True if a node reports about itself: not refused when programs' requests are.
  static bool IsOfOwnLife(Step step) { return step != kLocateStep && step != kDeleteStep && step != kRosterStep; }
  struct Script {
    std::string text;
    std::string digest;  // empty: the server may not know it yet
    bool is_loading = false;
    base::Pending loading;
  };

  class ConfirmedCall;

  RedisDirectory(os::EpollLoop& loop, const Options& options, std::unique_ptr<Tls> tls);
  std::unique_ptr<Finder> MakeFinder();
  std::unique_ptr<ServerConnection> MakeConnection(uint64_t stream, std::function<void()> began);
  void Began();
  void Load(Script& script);
  base::Pending Run(Step step, std::vector<std::string> arguments, base::Duration deadline,
                    ServerConnection::Callback done);
  // Runs a step, which counts once the Finder has confirmed its server as the master.
  base::Pending RunConfirmed(Step step, std::vector<std::string> arguments, base::Duration deadline,
                             ServerConnection::Callback done);
  base::Pending Ask(const LocateRequest& request, LocateCallback done);
  template <typename Callback>
  base::Pending Refuse(Callback done, absl::Status status);

  os::EpollLoop& loop_;
  const Options options_;
  const std::string prefix_;  // hash tag included
  base::Answers answers_;
  std::array<Script, kSteps> scripts_;
  base::Pending meeting_;
  Dialer dialer_;
  const std::unique_ptr<Finder> finder_;
  const std::unique_ptr<ServerConnection> connection_;
  ServerWatch watch_;
  Waiting waiting_;
};

}  // namespace tokamak::directory::redis

#include "lib/directory/redis/redis_directory.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/log.h"
#include "lib/directory/redis/replies.h"
#include "lib/directory/redis/scripts.h"
#include "lib/directory/redis/server/cluster_slot.h"
#include "lib/directory/redis/server/named_server.h"
#include "lib/directory/redis/server/sentinel_master.h"

namespace tokamak::directory::redis {
namespace {

// Lives, and objects of an ended life, in one Join.
constexpr size_t kLivesPerCleaning = 16;
constexpr size_t kObjectsPerCleaning = 256;
constexpr base::Duration kLoadDeadline = base::Seconds(5);

enum RandomStream : uint64_t { kCalls, kSubscriptions, kSentinels };

// As text these compare as the numbers do.
std::string Incarnation(uint64_t incarnation) { return absl::StrFormat("%020d", incarnation); }

std::string Generation(base::Generation generation) {
  return absl::StrFormat("%016x", static_cast<uint64_t>(generation));
}
std::string GenerationOrNone(base::Generation generation) {
  return generation == base::kNoGeneration ? std::string() : Generation(generation);
}

std::string Milliseconds(base::Duration duration) {
  return absl::StrCat(std::max<int64_t>(1, duration.milliseconds()));
}

std::string Flag(bool flag) { return flag ? "1" : "0"; }

std::string Bounds(const Options& options) {
  return absl::StrCat("local most_tombstones, most_named, most_lives, most_drops = ", options.tombstones, ", ",
                      kMaxHoldersNamed, ", ", kMaxNodes, ", ", kMaxDropsTold,
                      "\nlocal most_looked_at, most_cleaned = ", kLivesPerCleaning, ", ", kObjectsPerCleaning,
                      "\nlocal no_generation = '", Generation(base::kNoGeneration), "'\n");
}

absl::Status CheckNodeIds(const std::vector<NodeId>& nodes) {
  for (const NodeId& node : nodes) {
    if (absl::Status status = CheckNodeId(node); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckUpdates(const NodeId& node, absl::Span<const Update> updates) {
  if (updates.size() > kMaxUpdates) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kMaxUpdates, " updates at once"));
  }
  return CheckNodeId(node);
}

absl::Status CheckVerify(const NodeId& node, absl::Span<const base::ObjectVersion> versions) {
  if (versions.size() > kMaxVerified) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kMaxVerified, " versions at once"));
  }
  return CheckNodeId(node);
}

absl::Status CheckJoin(const JoinRequest& request) {
  if (absl::Status status = CheckNode(request.node); !status.ok()) return status;
  if (request.lease > base::Duration() && request.grace >= base::Duration()) return absl::OkStatus();
  return absl::InvalidArgumentError("a lease lasts longer than no time, and a grace is not negative");
}

absl::Status CheckPrefix(const std::string& prefix) {
  if (absl::Status status = CheckNodeId(prefix); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefix \"", prefix, "\": it is written as a node's name: ", status.message()));
  }
  // With the prefixes "a" and "a:node", node "x" of one and key "x" of the other would meet.
  if (!absl::StrContains(prefix, ':')) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("prefix \"", prefix, "\": a colon ends the prefix of a key: write a dash instead"));
}

// A Redis Cluster keeps all keys with the same text in braces on one server.
std::string PrefixOfKeys(const Options& options) {
  return options.target.kind == Target::Kind::kCluster ? absl::StrCat("{", options.prefix, "}") : options.prefix;
}

}  // namespace

absl::Status RedisDirectory::Check(const Options& options) {
  if (absl::Status status = CheckPrefix(options.prefix); !status.ok()) return status;
  for (const Secret* secret : {&options.password, &options.sentinel.password}) {
    if (const auto password = secret->Read(); !password.ok()) return password.status();
  }
  return options.target.tls ? Tls::Create(options.tls).status() : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<RedisDirectory>> RedisDirectory::Open(os::EpollLoop& loop, const Options& options) {
  if (absl::Status status = Check(options); !status.ok()) return status;
  for (const Secret* secret : {&options.password, &options.sentinel.password}) {
    if (const std::string exposure = secret->Exposure(); !exposure.empty()) LOG(WARNING) << exposure;
  }
  std::unique_ptr<Tls> tls;
  if (options.target.tls) {
    auto created = Tls::Create(options.tls);
    if (!created.ok()) return created.status();
    tls = *std::move(created);
  }
  return std::unique_ptr<RedisDirectory>(new RedisDirectory(loop, options, std::move(tls)));
}

RedisDirectory::RedisDirectory(os::EpollLoop& loop, const Options& options, std::unique_ptr<Tls> tls)
    : loop_(loop),
      options_(options),
      prefix_(PrefixOfKeys(options)),
      answers_(loop),
      dialer_(loop, std::move(tls)),
      finder_(MakeFinder()),
      connection_(MakeConnection(kCalls, [this] { Began(); })),
      watch_(loop, *connection_),
      waiting_(
          loop, [this](std::function<void()> began) { return MakeConnection(kSubscriptions, std::move(began)); },
          prefix_,
          [this](const LocateRequest& request, LocateCallback done) { return Ask(request, std::move(done)); }) {
  const absl::string_view begin = options.target.kind == Target::Kind::kCluster ? kInCluster : "";
  const auto set = [this, begin, &options](Step step, absl::string_view text) {
    scripts_[step].text = absl::StrCat(Bounds(options), kCommon, begin, text);
  };
  const std::string meeting = absl::StrCat("local recovery_ms = ", Milliseconds(options.recovery), "\n", kMeeting);
  set(kMeetStep, absl::StrCat(meeting, kMeet));
  set(kJoinStep, absl::StrCat(meeting, kJoin));
  set(kLeaveStep, kLeave);
  set(kUpdateStep, kUpdate);
  set(kLocateStep, kLocate);
  set(kDeleteStep, kDelete);
  set(kVerifyStep, kVerify);
  set(kHeldStep, kHeld);
  set(kRosterStep, kRoster);
  connection_->Start();
}

std::unique_ptr<Finder> RedisDirectory::MakeFinder() {
  const Target& target = options_.target;
  switch (target.kind) {
    case Target::Kind::kSentinel: {
      ConnectionOptions sentinels = options_.connection;
      sentinels.credentials = options_.sentinel;
      return std::make_unique<SentinelMaster>(loop_, dialer_, target, options_.random.Fork(kSentinels), sentinels);
    }
    case Target::Kind::kCluster:
      return std::make_unique<ClusterSlot>(loop_, target, absl::StrCat(prefix_, ":server"));
    case Target::Kind::kServer:
      break;
  }
  return std::make_unique<NamedServer>(loop_, target.places.front(), NamedServer::Role::kMaster);
}

std::unique_ptr<ServerConnection> RedisDirectory::MakeConnection(uint64_t stream, std::function<void()> began) {
  ConnectionOptions options = options_.connection;
  options.credentials = {options_.target.user, options_.password};
  options.database = options_.target.database;
  return std::make_unique<ServerConnection>(loop_, dialer_, *finder_, options_.random.Fork(stream), options,
                                            std::move(began));
}

// This may be another server, without the scripts.
void RedisDirectory::Began() {
  for (Script& script : scripts_) Load(script);
  meeting_ = Run(kMeetStep, {}, kLoadDeadline, [](const auto&) {});  // Join does it, too
  watch_.Look();
}

void RedisDirectory::Load(Script& script) {
  script.digest.clear();
  script.is_loading = true;
  script.loading = connection_->CallForNode({"SCRIPT", "LOAD", script.text}, kLoadDeadline,
                                            [&script](const absl::StatusOr<Reply>& reply) {
                                              script.is_loading = false;
                                              if (reply.ok()) script.digest = reply->text;
                                            });
}

// If the server forgot its scripts, one call fails: repeating it now would change the order of
// calls.
base::Pending RedisDirectory::Run(Step step, std::vector<std::string> arguments, base::Duration deadline,
                                  ServerConnection::Callback done) {
  Script& script = scripts_[step];
  Command command = {"EVALSHA", script.digest};
  if (script.digest.empty()) {
    command = {"EVAL", script.text};
    if (!script.is_loading) Load(script);  // it may have failed during the snapshot's reading
  }
  // The servers of a Redis Cluster choose by a key.
  const bool in_cluster = options_.target.kind == Target::Kind::kCluster;
  command.push_back(Flag(in_cluster));
  if (in_cluster) command.push_back(absl::StrCat(prefix_, ":server"));
  command.push_back(prefix_);
  for (std::string& argument : arguments) command.push_back(std::move(argument));
  auto replied = [this, &script, done = std::move(done)](absl::StatusOr<Reply> reply) {
    if (absl::StrContains(reply.status().message(), "NOSCRIPT") && !script.digest.empty()) Load(script);
    done(std::move(reply));
  };
  return IsOfOwnLife(step) ? connection_->CallForNode(command, deadline, std::move(replied))
                           : connection_->Call(command, deadline, std::move(replied));
}

class RedisDirectory::ConfirmedCall final : public base::Handle {
 public:
  base::Pending step;  // the call, then its confirmation
};

base::Pending RedisDirectory::RunConfirmed(Step step, std::vector<std::string> arguments, base::Duration deadline,
                                           ServerConnection::Callback done) {
  if (!finder_->needs_confirmation()) return Run(step, std::move(arguments), deadline, std::move(done));
  auto handle = std::make_unique<ConfirmedCall>();
  ConfirmedCall* const call = handle.get();
  const auto asked = [this, attempt = connection_->attempts()]() -> std::optional<Place> {
    return connection_->attempts() == attempt ? connection_->place() : std::nullopt;
  };
  call->step =
      Run(step, std::move(arguments), deadline,
          [this, call, asked, limit = loop_.Now() + deadline, done = std::move(done)](absl::StatusOr<Reply> reply) {
            const std::optional<Place> server = asked();
            if (!reply.ok()) return done(std::move(reply));
            if (!server.has_value()) return done(connection_->trouble());
            const base::Duration left = std::max(base::Duration(), limit - loop_.Now());
            call->step = finder_->Confirm(*server, left, [done, reply = std::move(reply)](const absl::Status& status) {
              done(status.ok() ? reply : absl::StatusOr<Reply>(status));
            });
          });
  return handle;
}

template <typename Callback>
base::Pending RedisDirectory::Refuse(Callback done, absl::Status status) {
  return answers_.Add([done = std::move(done), status = std::move(status)] { done(status); });
}

base::Pending RedisDirectory::Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) {
  if (absl::Status status = CheckJoin(request); !status.ok()) return Refuse(std::move(done), std::move(status));
  const NodeInfo& node = request.node;
  return RunConfirmed(
      kJoinStep,
      {node.id, Incarnation(node.incarnation), absl::StrJoin(node.engines, " "), node.device,
       absl::StrCat(node.capacity), Milliseconds(request.lease), Milliseconds(request.lease + request.grace),
       Flag(request.returning), Flag(request.complete), request.mark},
      deadline,
      [id = node.id, done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(ToJoined(reply, id)); });
}

base::Pending RedisDirectory::Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline,
                                    StatusCallback done) {
  if (absl::Status status = CheckNodeId(node); !status.ok()) return Refuse(std::move(done), std::move(status));
  return Run(kLeaveStep, {node, Incarnation(incarnation)}, deadline,
             [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(reply.status()); });
}

base::Pending RedisDirectory::Update(const NodeId& node, absl::string_view as_of,
                                     absl::Span<const directory::Update> updates, base::Duration deadline,
                                     UpdateCallback done) {
  if (absl::Status status = CheckUpdates(node, updates); !status.ok()) {
    return Refuse(std::move(done), std::move(status));
  }
  std::vector<std::string> arguments = {node, std::string(as_of)};
  for (const directory::Update& update : updates) {
    const bool announces = update.kind == directory::Update::Kind::kAnnounce;
    for (std::string argument :
         {std::string(announces ? "announce" : "withdraw"), update.version.id.ToHex(),
          Generation(update.version.generation), absl::StrCat(update.data_size), absl::StrCat(update.metadata_size),
          absl::StrCat(static_cast<int>(update.standing)), std::string(update.name.text())}) {
      arguments.push_back(std::move(argument));
    }
  }
  return Run(kUpdateStep, std::move(arguments), deadline,
             [node, count = updates.size(), done = std::move(done)](const absl::StatusOr<Reply>& reply) {
               done(ToUpdated(reply, node, count));
             });
}

base::Pending RedisDirectory::Locate(const LocateRequest& request, LocateCallback done) {
  if (!request.puller.empty()) {
    if (absl::Status status = CheckNodeId(request.puller); !status.ok()) {
      return Refuse(std::move(done), std::move(status));
    }
  }
  return request.wait > base::Duration() ? waiting_.Locate(request, std::move(done)) : Ask(request, std::move(done));
}

base::Pending RedisDirectory::Ask(const LocateRequest& request, LocateCallback done) {
  return Run(kLocateStep, {request.id.ToHex(), request.puller}, request.deadline,
             [id = request.id, puller = request.puller, key = absl::StrCat(prefix_, ":object:", request.id.ToHex()),
              done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(ToObject(reply, id, puller, key)); });
}

base::Pending RedisDirectory::Delete(const DeleteRequest& request, base::Duration deadline, DeleteCallback done) {
  if (absl::Status status = CheckNodeIds(request.dropped); !status.ok()) {
    return Refuse(std::move(done), std::move(status));
  }
  std::vector<std::string> arguments = {request.id.ToHex(), GenerationOrNone(request.generation), request.after};
  arguments.insert(arguments.end(), request.dropped.begin(), request.dropped.end());
  return RunConfirmed(kDeleteStep, std::move(arguments), deadline,
                      [recovery = options_.recovery, done = std::move(done)](const absl::StatusOr<Reply>& reply) {
                        done(ToDeleted(reply, recovery));
                      });
}

base::Pending RedisDirectory::Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions,
                                     base::Duration deadline, VerifyCallback done) {
  if (absl::Status status = CheckVerify(node, versions); !status.ok()) {
    return Refuse(std::move(done), std::move(status));
  }
  std::vector<std::string> arguments = {node};
  for (const base::ObjectVersion& version : versions) {
    arguments.push_back(version.id.ToHex());
    arguments.push_back(Generation(version.generation));
  }
  return Run(kVerifyStep, std::move(arguments), deadline,
             [node, count = versions.size(), done = std::move(done)](const absl::StatusOr<Reply>& reply) {
               done(ToVerified(reply, node, count));
             });
}

base::Pending RedisDirectory::Held(const NodeId& node, const std::string& after, base::Duration deadline,
                                   HeldCallback done) {
  if (absl::Status status = CheckNodeId(node); !status.ok()) return Refuse(std::move(done), std::move(status));
  return Run(kHeldStep, {node, after, absl::StrCat(kHeldPage)}, deadline,
             [node, done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(ToHeld(reply, node)); });
}

base::Pending RedisDirectory::Roster(base::Duration deadline, RosterCallback done) {
  return Run(kRosterStep, {}, deadline,
             [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(ToRoster(reply)); });
}

}  // namespace tokamak::directory::redis

#include "lib/directory/redis/redis_directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/directory/redis/replies.h"
#include "lib/directory/redis/scripts.h"

namespace tokamak::directory::redis {
namespace {

// What one Join cleans after others: lives looked at, and objects of a life that has ended.
constexpr size_t kLivesPerCleaning = 16;
constexpr size_t kObjectsPerCleaning = 256;
constexpr base::Duration kLoadDeadline = base::Seconds(5);

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

std::string Bounds() {
  return absl::StrCat("local most_tombstones, most_named, most_lives, most_drops = ", kMaxTombstones, ", ",
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

}  // namespace

absl::StatusOr<std::unique_ptr<RedisDirectory>> RedisDirectory::Open(os::EpollLoop& loop, const Options& options) {
  if (absl::Status status = CheckNodeId(options.prefix); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefix \"", options.prefix, "\": it is written as a node's name: ", status.message()));
  }
  // Of "a" and "a:node" one's node "x" and the other's key "x" would be one.
  if (absl::StrContains(options.prefix, ':')) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefix \"", options.prefix, "\": a colon ends the prefix of a key: write a dash instead"));
  }
  auto directory = std::unique_ptr<RedisDirectory>(new RedisDirectory(loop, options));
  RedisDirectory* const self = directory.get();
  auto connection = Connection::Open(loop, options.connection, [self] { self->Began(); });
  if (!connection.ok()) return connection.status();
  self->connection_ = *std::move(connection);
  auto waiting = Waiting::Open(
      loop, options.connection, options.prefix,
      [self](const LocateRequest& request, LocateCallback done) { return self->Ask(request, std::move(done)); });
  if (!waiting.ok()) return waiting.status();
  self->waiting_ = *std::move(waiting);
  self->connection_->Start();
  return directory;
}

RedisDirectory::RedisDirectory(os::EpollLoop& loop, const Options& options) : options_(options), answers_(loop) {
  const auto set = [this](Step step, const char* text) { scripts_[step].text = absl::StrCat(Bounds(), kCommon, text); };
  set(kJoinStep, kJoin);
  set(kLeaveStep, kLeave);
  set(kUpdateStep, kUpdate);
  set(kLocateStep, kLocate);
  set(kDeleteStep, kDelete);
  set(kVerifyStep, kVerify);
  set(kNodesStep, kNodes);
}

// It may be another server, which does not know the scripts.
void RedisDirectory::Began() {
  for (Script& script : scripts_) Load(script);
}

void RedisDirectory::Load(Script& script) {
  script.digest.clear();
  script.is_loading = true;
  script.loading =
      connection_->Call({"SCRIPT", "LOAD", script.text}, kLoadDeadline, [&script](const absl::StatusOr<Reply>& reply) {
        script.is_loading = false;
        if (reply.ok()) script.digest = reply->text;
      });
}

// Where an operator has made the server forget its scripts one call fails: to send it again now
// would change the order of calls.
base::Pending RedisDirectory::Run(Step step, std::vector<std::string> arguments, base::Duration deadline,
                                  Connection::Callback done) {
  Script& script = scripts_[step];
  std::vector<std::string> command = {"EVALSHA", script.digest, "0", options_.prefix};
  if (script.digest.empty()) {
    command = {"EVAL", script.text, "0", options_.prefix};
    if (!script.is_loading) Load(script);  // it was asked too early, while it read its snapshot
  }
  for (std::string& argument : arguments) command.push_back(std::move(argument));
  return connection_->Call(command, deadline, [this, &script, done = std::move(done)](absl::StatusOr<Reply> reply) {
    if (absl::StrContains(reply.status().message(), "NOSCRIPT") && !script.digest.empty()) Load(script);
    done(std::move(reply));
  });
}

template <typename Callback>
base::Pending RedisDirectory::Refuse(Callback done, absl::Status status) {
  return answers_.Add([done = std::move(done), status = std::move(status)] { done(status); });
}

base::Pending RedisDirectory::Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) {
  if (absl::Status status = CheckJoin(request); !status.ok()) return Refuse(std::move(done), std::move(status));
  const NodeInfo& node = request.node;
  return Run(kJoinStep,
             {node.id, Incarnation(node.incarnation), absl::StrJoin(node.engines, " "), node.device,
              absl::StrCat(node.capacity), Milliseconds(request.lease), Milliseconds(request.lease + request.grace),
              Flag(request.returning), Flag(request.complete), Milliseconds(options_.recovery)},
             deadline, [this, id = node.id, done = std::move(done)](const absl::StatusOr<Reply>& reply) {
               const absl::StatusOr<JoinReply> joined = ToJoined(reply, id);
               has_joined_ |= joined.ok();
               done(joined);
             });
}

base::Pending RedisDirectory::Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline,
                                    StatusCallback done) {
  if (absl::Status status = CheckNodeId(node); !status.ok()) return Refuse(std::move(done), std::move(status));
  return Run(kLeaveStep, {node, Incarnation(incarnation)}, deadline,
             [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(reply.status()); });
}

base::Pending RedisDirectory::Update(const NodeId& node, absl::Span<const directory::Update> updates,
                                     base::Duration deadline, UpdateCallback done) {
  if (absl::Status status = CheckUpdates(node, updates); !status.ok()) {
    return Refuse(std::move(done), std::move(status));
  }
  std::vector<std::string> arguments = {node};
  for (const directory::Update& update : updates) {
    const bool announces = update.kind == directory::Update::Kind::kAnnounce;
    for (std::string argument : {std::string(announces ? "announce" : "withdraw"), update.version.id.ToHex(),
                                 Generation(update.version.generation), absl::StrCat(update.data_size),
                                 absl::StrCat(update.metadata_size), Flag(update.established)}) {
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
  return request.wait > base::Duration() ? waiting_->Locate(request, std::move(done)) : Ask(request, std::move(done));
}

base::Pending RedisDirectory::Ask(const LocateRequest& request, LocateCallback done) {
  return Run(kLocateStep, {request.id.ToHex(), request.puller}, request.deadline,
             [puller = request.puller, done = std::move(done)](const absl::StatusOr<Reply>& reply) {
               done(ToObject(reply, puller));
             });
}

base::Pending RedisDirectory::Delete(const DeleteRequest& request, base::Duration deadline, DeleteCallback done) {
  if (absl::Status status = CheckNodeIds(request.dropped); !status.ok()) {
    return Refuse(std::move(done), std::move(status));
  }
  std::vector<std::string> arguments = {request.id.ToHex(), GenerationOrNone(request.generation), request.after,
                                        Flag(has_joined_)};
  arguments.insert(arguments.end(), request.dropped.begin(), request.dropped.end());
  return Run(kDeleteStep, std::move(arguments), deadline,
             [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(ToDeleted(reply)); });
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

base::Pending RedisDirectory::Nodes(base::Duration deadline, NodesCallback done) {
  return Run(kNodesStep, {}, deadline,
             [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(ToNodes(reply)); });
}

}  // namespace tokamak::directory::redis

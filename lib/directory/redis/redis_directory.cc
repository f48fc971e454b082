#include "lib/directory/redis/redis_directory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "glog/logging.h"
#include "lib/directory/redis/scripts.h"

namespace tokamak::directory::redis {
namespace {

// What one Join cleans after others: nodes looked at, and objects of a life that has ended.
constexpr size_t kNodesPerCleaning = 16;
constexpr size_t kObjectsPerCleaning = 256;
constexpr base::Duration kHelloDeadline = base::Seconds(5);

// As text these compare as the numbers do.
std::string Incarnation(uint64_t incarnation) { return absl::StrFormat("%020d", incarnation); }

absl::Status Nonsense() {
  return absl::UnavailableError(
      "the Redis server's answer makes no sense: do programs of different versions share its keys? Give each a prefix");
}

bool IsNumber(const Reply& reply, uint64_t* number) {
  return reply.kind == Reply::Kind::kText && absl::SimpleAtoi(reply.text, number);
}

absl::StatusOr<ObjectInfo> ToObject(const Reply& reply) {
  if (reply.kind != Reply::Kind::kArray) return Nonsense();
  if (reply.elements.empty()) return absl::NotFoundError("no node holds the object");
  ObjectInfo object;
  if (reply.elements.size() < 3 || !IsNumber(reply.elements[0], &object.data_size) ||
      !IsNumber(reply.elements[1], &object.metadata_size)) {
    return Nonsense();
  }
  for (size_t i = 2; i < reply.elements.size() && object.holders.size() < kMaxHolders; ++i) {
    if (!CheckNodeId(reply.elements[i].text).ok()) return Nonsense();
    object.holders.push_back(reply.elements[i].text);
  }
  std::sort(object.holders.begin(), object.holders.end());
  return object;
}

absl::StatusOr<NodeInfo> ToNode(const Reply& reply) {
  NodeInfo node;
  if (reply.elements.size() != 5 || !IsNumber(reply.elements[1], &node.incarnation) ||
      !IsNumber(reply.elements[4], &node.capacity)) {
    return Nonsense();
  }
  node.id = reply.elements[0].text;
  node.engines = absl::StrSplit(reply.elements[2].text, ' ', absl::SkipEmpty());
  node.device = reply.elements[3].text;
  return node;
}

absl::StatusOr<std::vector<NodeInfo>> ToNodes(const Reply& reply) {
  std::vector<NodeInfo> nodes;
  for (const Reply& element : reply.elements) {
    absl::StatusOr<NodeInfo> node = ToNode(element);
    if (!node.ok()) return node.status();
    if (!CheckNode(*node).ok() || nodes.size() == kMaxNodes) return Nonsense();
    nodes.push_back(*std::move(node));
  }
  std::sort(nodes.begin(), nodes.end(), [](const NodeInfo& a, const NodeInfo& b) { return a.id < b.id; });
  return nodes;
}

absl::Status ToAnnounced(const Reply& reply, const NodeId& node) {
  const auto text = [&](size_t i) { return i < reply.elements.size() ? reply.elements[i].text : std::string(); };
  if (text(0) == "announced") return absl::OkStatus();
  if (text(0) == "no lease") {
    return absl::NotFoundError(absl::StrCat("node ", node, " has no lease in the directory: join first"));
  }
  if (text(0) != "other sizes") return Nonsense();
  return absl::InvalidArgumentError(absl::StrCat("the cluster knows this object with ", text(1), " + ", text(2),
                                                 " bytes: an id names one immutable object, choose another id"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisDirectory>> RedisDirectory::Open(os::EpollLoop& loop, const Options& options) {
  if (absl::Status status = CheckNodeId(options.prefix); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("prefix \"", options.prefix, "\": it is written as a node's name: ", status.message()));
  }
  auto directory = std::unique_ptr<RedisDirectory>(new RedisDirectory(loop, options));
  RedisDirectory* const self = directory.get();
  auto connection = Connection::Open(loop, options.connection, [self] { self->Began(); });
  if (!connection.ok()) return connection.status();
  self->connection_ = *std::move(connection);
  auto waiting = Waiting::Open(loop, options.connection, options.prefix,
                               [self](const base::ObjectId& id, base::Duration deadline, LocateCallback done) {
                                 self->Ask(id, deadline, std::move(done));
                               });
  if (!waiting.ok()) return waiting.status();
  self->waiting_ = *std::move(waiting);
  self->connection_->Start();
  return directory;
}

// A server with another run_id is another server, or the same after a restart.
void RedisDirectory::Began() {
  connection_->Call({"INFO", "server"}, kHelloDeadline, [this](const absl::StatusOr<Reply>& reply) {
    if (!reply.ok()) return;
    for (absl::string_view line : absl::StrSplit(reply->text, "\r\n")) {
      if (!absl::ConsumePrefix(&line, "run_id:") || line == server_run_) continue;
      server_run_ = std::string(line);
      joined_.clear();
    }
  });
}

void RedisDirectory::Run(const char* script, std::vector<std::string> arguments, base::Duration deadline,
                         Connection::Callback done) {
  std::vector<std::string> command = {"EVAL", absl::StrCat(kCommon, script), "0", options_.prefix};
  for (std::string& argument : arguments) command.push_back(std::move(argument));
  connection_->Call(command, deadline, std::move(done));
}

void RedisDirectory::RunForStatus(const char* script, std::vector<std::string> arguments, base::Duration deadline,
                                  StatusCallback done) {
  Run(script, std::move(arguments), deadline,
      [done = std::move(done)](const absl::StatusOr<Reply>& reply) { done(reply.status()); });
}

void RedisDirectory::Join(const NodeInfo& node, base::Duration lease, base::Duration deadline, JoinCallback done) {
  if (absl::Status status = CheckNode(node); !status.ok()) {
    return answers_.Add([done = std::move(done), status = std::move(status)] { done(status); });
  }
  const int64_t lease_ms = std::max<int64_t>(1, lease.milliseconds());
  Run(kJoin,
      {node.id, Incarnation(node.incarnation), absl::StrCat(lease_ms), absl::StrJoin(node.engines, " "), node.device,
       absl::StrCat(node.capacity), absl::StrCat(kMaxNodes), absl::StrCat(kNodesPerCleaning),
       absl::StrCat(kObjectsPerCleaning)},
      deadline, [this, id = node.id, done = std::move(done)](const absl::StatusOr<Reply>& reply) {
        done(reply.ok() ? Joined(id, *reply) : reply.status());
      });
}

absl::StatusOr<JoinResult> RedisDirectory::Joined(const NodeId& id, const Reply& reply) {
  if (reply.text == "later") {
    return absl::FailedPreconditionError(
        absl::StrCat("a later life of node ", id, " is in the directory: stop this one, or give it another name"));
  }
  if (reply.text == "full") {
    return absl::ResourceExhaustedError(absl::StrCat("the directory holds ", kMaxNodes, " nodes at most"));
  }
  if (reply.text != "entered" && reply.text != "renewed") return Nonsense();
  const bool known_to_us = !joined_.insert(id).second;
  return reply.text == "renewed" && known_to_us ? JoinResult::kRenewed : JoinResult::kEntered;
}

void RedisDirectory::Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) {
  RunForStatus(kLeave, {node, Incarnation(incarnation)}, deadline, std::move(done));
}

void RedisDirectory::Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const NodeId& node,
                              base::Duration deadline, StatusCallback done) {
  Run(kAnnounce, {id.ToHex(), absl::StrCat(data_size), absl::StrCat(metadata_size), node, absl::StrCat(kMaxHolders)},
      deadline, [node, done = std::move(done)](const absl::StatusOr<Reply>& reply) {
        done(reply.ok() ? ToAnnounced(*reply, node) : reply.status());
      });
}

void RedisDirectory::Withdraw(const base::ObjectId& id, const NodeId& node, base::Duration deadline,
                              StatusCallback done) {
  RunForStatus(kWithdraw, {id.ToHex(), node}, deadline, std::move(done));
}

void RedisDirectory::Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline,
                            LocateCallback done) {
  if (wait > base::Duration()) return waiting_->Locate(id, wait, deadline, std::move(done));
  Ask(id, deadline, std::move(done));
}

void RedisDirectory::Ask(const base::ObjectId& id, base::Duration deadline, LocateCallback done) {
  Run(kLocate, {id.ToHex()}, deadline, [done = std::move(done)](const absl::StatusOr<Reply>& reply) {
    done(reply.ok() ? ToObject(*reply) : reply.status());
  });
}

void RedisDirectory::Nodes(base::Duration deadline, NodesCallback done) {
  Run(kNodes, {}, deadline, [done = std::move(done)](const absl::StatusOr<Reply>& reply) {
    done(reply.ok() ? ToNodes(*reply) : reply.status());
  });
}

}  // namespace tokamak::directory::redis

// A Redis of the test's own, and a directory on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/directory/redis/redis_directory.h"
#include "lib/os/epoll_loop.h"
#include "tests/directory/redis_line.h"
#include "tests/directory/redis_server.h"

namespace tokamak::directory::redis {

using Ids = std::vector<NodeId>;
using Places = std::vector<uint32_t>;

constexpr base::Duration kPatience = base::Seconds(30);
constexpr base::Duration kLong = base::Seconds(3600);

inline base::ObjectVersion Version(const std::string& object, uint64_t generation = 1) {
  return {base::ObjectId::FromName(object), base::Generation{generation}};
}

// One call and its answer.
template <typename T>
struct Call {
  base::Pending pending;
  T result = absl::InternalError("no answer");
  bool answered = false;
};

class RedisDirectoryTest : public testing::Test {
 protected:
  explicit RedisDirectoryTest(std::vector<std::string> arguments = {}) : server_(std::move(arguments)) {
    directory_ = Open();
    AwaitServer();
  }

  std::unique_ptr<RedisDirectory> Open(Options options = {}) {
    options.target = server_.target();
    auto directory = RedisDirectory::Open(loop_, options);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return directory.ok() ? *std::move(directory) : nullptr;
  }
  std::unique_ptr<RedisDirectory> OpenPrefix(const std::string& prefix) {
    Options options;
    options.prefix = prefix;
    return Open(options);
  }
  std::unique_ptr<RedisDirectory> OpenRecovery(base::Duration recovery) {
    Options options;
    options.recovery = recovery;
    return Open(options);
  }
  std::unique_ptr<Line> OpenLine() { return std::make_unique<Line>(loop_, server_.target()); }
  void AwaitServer() {
    RunUntil([&] { return Nodes(*directory_).ok(); });
  }
  void Restart() {
    server_.Kill();
    server_.Start();
    AwaitServer();
  }

  // Asks again and again; between two times the loop does what is due.
  bool RunUntil(const std::function<bool()>& done) {
    const base::Time limit = loop_.Now() + kPatience;
    while (!done()) {
      if (loop_.Now() >= limit) return false;
      Pass(base::Milliseconds(1));
    }
    return true;
  }
  void Pass(base::Duration duration) {
    loop_.RunUntil([] { return false; }, loop_.Now() + duration);
  }
  template <typename T>
  std::unique_ptr<Call<T>> Start(const std::function<base::Pending(std::function<void(T)>)>& make) {
    auto call = std::make_unique<Call<T>>();
    call->pending = make([call = call.get()](T value) {
      call->result = std::move(value);
      call->answered = true;
    });
    return call;
  }
  template <typename T>
  T Run(const std::function<base::Pending(std::function<void(T)>)>& make) {
    const auto call = Start<T>(make);
    loop_.RunUntil([&] { return call->answered; }, loop_.Now() + kPatience);
    return call->result;
  }

  static JoinRequest Request(const NodeId& id, uint64_t incarnation = 1) {
    JoinRequest request;
    request.node = {id, incarnation, {"10.0.0.1:7000"}, "soft", 1};
    request.lease = kLong;
    request.grace = kLong;
    return request;
  }
  absl::StatusOr<JoinReply> Join(Directory& directory, const JoinRequest& request) {
    return Run<absl::StatusOr<JoinReply>>([&](auto done) { return directory.Join(request, kPatience, done); });
  }
  absl::StatusOr<JoinReply> Join(const NodeId& id, uint64_t incarnation = 1) {
    return Join(*directory_, Request(id, incarnation));
  }
  absl::StatusOr<JoinReply> Return(const NodeId& id, bool complete) {
    JoinRequest request = Request(id);
    request.returning = true;
    request.complete = complete;
    return Join(*directory_, request);
  }
  // Its lease ends a moment later.
  void LetFallSilent(const NodeId& id, base::Duration grace = kLong) {
    JoinRequest request = Request(id);
    request.lease = base::Milliseconds(1);
    request.grace = grace;
    ASSERT_TRUE(Join(*directory_, request).ok());
    ASSERT_TRUE(RunUntil([&] { return !IsAlive(id); }));
  }
  bool IsAlive(const NodeId& id) {
    const auto nodes = Nodes(*directory_);
    EXPECT_TRUE(nodes.ok()) << nodes.status();
    for (const NodeInfo& node : nodes.value_or(std::vector<NodeInfo>())) {
      if (node.id == id) return true;
    }
    return false;
  }

  std::unique_ptr<Call<absl::StatusOr<UpdateStatuses>>> StartUpdate(Directory& directory, const NodeId& node,
                                                                    const std::vector<Update>& updates) {
    return Start<absl::StatusOr<UpdateStatuses>>(
        [&](auto done) { return directory.Update(node, {}, updates, kPatience, done); });
  }
  absl::Status UpdateOne(Directory& directory, const NodeId& node, const Update& update) {
    const auto call = StartUpdate(directory, node, {update});
    loop_.RunUntil([&] { return call->answered; }, loop_.Now() + kPatience);
    return call->result.ok() ? call->result->front() : call->result.status();
  }
  static Update Announcement(const base::ObjectVersion& version, bool established = false) {
    return {Update::Kind::kAnnounce, version, 10, 2, established ? Standing::kEstablished : Standing::kNew};
  }
  absl::Status Announce(const base::ObjectVersion& version, const NodeId& node, bool established = false) {
    return UpdateOne(*directory_, node, Announcement(version, established));
  }
  absl::Status Withdraw(const base::ObjectVersion& version, const NodeId& node) {
    Update update;
    update.kind = Update::Kind::kWithdraw;
    update.version = version;
    return UpdateOne(*directory_, node, update);
  }

  std::unique_ptr<Call<absl::StatusOr<LocatedObject>>> StartLocate(Directory& directory, const std::string& object,
                                                                   base::Duration wait = {},
                                                                   const NodeId& puller = "") {
    const LocateRequest request{base::ObjectId::FromName(object), wait, wait + kPatience, puller};
    return Start<absl::StatusOr<LocatedObject>>([&](auto done) { return directory.Locate(request, done); });
  }
  absl::StatusOr<LocatedObject> Locate(const std::string& object, const NodeId& puller = "") {
    const auto call = StartLocate(*directory_, object, {}, puller);
    loop_.RunUntil([&] { return call->answered; }, loop_.Now() + kPatience);
    return call->result;
  }
  std::set<NodeId> Holders(const std::string& object) {
    const absl::StatusOr<LocatedObject> info = Locate(object);
    EXPECT_TRUE(info.ok() || absl::IsNotFound(info.status())) << info.status();
    if (!info.ok()) return {};
    return {info->holders.begin(), info->holders.end()};
  }
  absl::StatusOr<DeleteReply> Delete(const DeleteRequest& request) {
    return Run<absl::StatusOr<DeleteReply>>([&](auto done) { return directory_->Delete(request, kPatience, done); });
  }
  absl::StatusOr<DeleteReply> Delete(const std::string& object) {
    DeleteRequest request;
    request.id = base::ObjectId::FromName(object);
    return Delete(request);
  }
  absl::StatusOr<HeldReply> Held(const NodeId& node, const std::string& after = "") {
    return Run<absl::StatusOr<HeldReply>>([&](auto done) { return directory_->Held(node, after, kPatience, done); });
  }
  absl::StatusOr<std::vector<uint32_t>> Verify(const NodeId& node, const std::vector<base::ObjectVersion>& versions) {
    return Run<absl::StatusOr<Places>>([&](auto done) { return directory_->Verify(node, versions, kPatience, done); });
  }
  absl::StatusOr<std::vector<NodeInfo>> Nodes(Directory& directory) {
    return Run<absl::StatusOr<std::vector<NodeInfo>>>([&](auto done) { return directory.Nodes(kPatience, done); });
  }
  Reply Ask(ServerConnection& connection, const std::vector<std::string>& command) {
    return Run<absl::StatusOr<Reply>>([&](auto done) { return connection.Call(command, kPatience, done); })
        .value_or(Reply());
  }
  // By hand, once the server answers.
  Reply AskServer(const std::vector<std::string>& command) {
    if (operator_ == nullptr) operator_ = OpenLine();
    RunUntil([&] { return Ask(operator_->connection(), {"PING"}).text == "PONG"; });
    return Ask(operator_->connection(), command);
  }
  std::vector<std::string> Keys(const std::string& pattern) {
    std::vector<std::string> keys;
    for (const Reply& key : AskServer({"KEYS", pattern}).elements) keys.push_back(key.text);
    return keys;
  }
  size_t Channels() { return AskServer({"PUBSUB", "CHANNELS", "tokamak:announced:*"}).elements.size(); }

  os::EpollLoop loop_;
  RedisServer server_;
  std::unique_ptr<RedisDirectory> directory_;
  std::unique_ptr<Line> operator_;
};

}  // namespace tokamak::directory::redis

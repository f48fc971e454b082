#include "tests/directory/redis_group.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "lib/base/check.h"
#include "lib/os/file_descriptor.h"
#include "tests/directory/redis_program.h"

namespace tokamak::directory::redis {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};
constexpr char kMasterName[] = "tokamak";

std::string TextOf(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_INTEGER) return absl::StrCat(reply.integer);
  if (reply.type != REDIS_REPLY_ARRAY) return reply.str == nullptr ? "" : std::string(reply.str, reply.len);
  std::vector<std::string> texts;
  for (size_t i = 0; i < reply.elements; ++i) texts.push_back(TextOf(*reply.element[i]));
  return absl::StrJoin(texts, " ");
}

// Looks at other processes, of which nothing else tells.
bool Eventually(const std::function<bool()>& check) {
  const Clock::time_point limit = Clock::now() + kPatience;
  while (!check()) {
    if (Clock::now() > limit) return false;
    poll(nullptr, 0, 20);
  }
  return true;
}

}  // namespace

uint16_t FreePort() {
  const os::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CHECK_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  CHECK_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

// ---- one

RedisOnPort::RedisOnPort(RedisRole role, Arguments arguments) : role_(role), arguments_(std::move(arguments)) {
  Start();
}

void RedisOnPort::Start() {
  os::ChildOptions options;
  options.argv = {RedisProgram()};
  if (role_ == RedisRole::kSentinel) {
    const std::string file = folder_.Path("sentinel.conf");  // it writes there what it learns
    std::ofstream(file, std::ios::app) << "";
    options.argv.insert(options.argv.end(), {file, "--sentinel"});
  }
  for (const std::string& argument : {std::string("--port"), absl::StrCat(port_), std::string("--bind"),
                                      std::string("127.0.0.1"), std::string("--dir"), folder_.path()}) {
    options.argv.push_back(argument);
  }
  options.argv.insert(options.argv.end(), arguments_.begin(), arguments_.end());
  options.output = folder_.Path("log");
  options.die_with_parent = true;
  auto process = os::ChildProcess::Start(options);
  CHECK(process.ok()) << process.status();
  process_ = *std::move(process);
  CHECK(Eventually([this] { return Ask({"PING"}).status().code() != absl::StatusCode::kUnavailable; })) << log();
}

void RedisOnPort::Freeze() { CHECK(process_->Signal(SIGSTOP).ok()); }
void RedisOnPort::Thaw() { CHECK(process_->Signal(SIGCONT).ok()); }

std::string RedisOnPort::log() const {
  std::ifstream file(folder_.Path("log"));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

absl::StatusOr<std::string> RedisOnPort::Ask(const Arguments& command) const {
  const timeval patience = {1, 0};
  const std::unique_ptr<redisContext, void (*)(redisContext*)> context(
      redisConnectWithTimeout("127.0.0.1", port_, patience), &redisFree);
  if (context == nullptr || context->err != 0) return absl::UnavailableError("no connection");
  redisSetTimeout(context.get(), patience);
  std::vector<const char*> starts;
  std::vector<size_t> sizes;
  for (const std::string& argument : command) {
    starts.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  const std::unique_ptr<redisReply, void (*)(void*)> reply(
      static_cast<redisReply*>(
          redisCommandArgv(context.get(), static_cast<int>(command.size()), starts.data(), sizes.data())),
      &freeReplyObject);
  if (reply == nullptr) return absl::UnavailableError(context->errstr);
  const std::string text = TextOf(*reply);
  if (reply->type == REDIS_REPLY_ERROR) return absl::UnknownError(text);
  return text;
}

bool RedisOnPort::Await(const Arguments& command, const std::string& part) const {
  return Eventually([&] {
    const absl::StatusOr<std::string> answer = Ask(command);
    return answer.ok() && absl::StrContains(*answer, part);
  });
}

// ---- a master, replicas, Sentinels

RedisGroup::RedisGroup(const Arguments& arguments) {
  for (size_t i = 0; i < kServers; ++i) {
    Arguments flags = {
        "--save", "", "--repl-diskless-sync-delay", "0", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"};
    if (i > 0) flags.insert(flags.end(), {"--replicaof", "127.0.0.1", absl::StrCat(servers_[0]->port())});
    flags.insert(flags.end(), arguments.begin(), arguments.end());
    servers_.push_back(std::make_unique<RedisOnPort>(RedisRole::kServer, flags));
  }
  for (size_t i = 1; i < kServers; ++i) {
    CHECK(servers_[i]->Await({"INFO", "replication"}, "master_link_status:up")) << servers_[i]->log();
  }
  for (size_t i = 0; i < kSentinels; ++i) {
    sentinels_.push_back(std::make_unique<RedisOnPort>(RedisRole::kSentinel, Arguments()));
    RedisOnPort& sentinel = *sentinels_.back();
    CHECK(sentinel.Ask({"SENTINEL", "MONITOR", kMasterName, "127.0.0.1", absl::StrCat(servers_[0]->port()), "2"}).ok())
        << sentinel.log();
    CHECK(sentinel
              .Ask({"SENTINEL", "SET", kMasterName, "down-after-milliseconds", "500", "failover-timeout", "2000",
                    "parallel-syncs", "2"})
              .ok())
        << sentinel.log();
  }
  for (const auto& sentinel : sentinels_) {
    CHECK(sentinel->Await({"SENTINEL", "MASTER", kMasterName}, absl::StrCat("num-slaves ", kServers - 1)));
    CHECK(sentinel->Await({"SENTINEL", "MASTER", kMasterName}, absl::StrCat("num-other-sentinels ", kSentinels - 1)));
  }
}

std::string RedisGroup::directory() const {
  std::vector<std::string> places;
  for (const auto& sentinel : sentinels_) places.push_back(absl::StrCat("127.0.0.1:", sentinel->port()));
  return absl::StrCat("sentinel://", absl::StrJoin(places, ","), "/", kMasterName);
}

size_t RedisGroup::Master() const {
  std::map<std::string, size_t> votes;
  for (const auto& sentinel : sentinels_) {
    if (!sentinel->started()) continue;
    const auto said = sentinel->Ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", kMasterName});
    if (said.ok()) ++votes[*said];
  }
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (votes[absl::StrCat("127.0.0.1 ", servers_[i]->port())] > kSentinels / 2) return i;
  }
  return kServers;
}

bool RedisGroup::AwaitMasterOtherThan(size_t before) const {
  return Eventually([&] {
    const size_t master = Master();
    return master != before && master != kServers && servers_[master]->Await({"ROLE"}, "master");
  });
}

bool RedisGroup::AwaitWhole() const {
  return Eventually([&] {
    const size_t master = Master();
    if (master == kServers) return false;
    const auto info = servers_[master]->Ask({"INFO", "replication"});
    return info.ok() && absl::StrContains(*info, absl::StrCat("min_slaves_good_slaves:", kServers - 1));
  });
}

// ---- a Redis Cluster

RedisCluster::RedisCluster(const Arguments& arguments) {
  constexpr size_t kMasters = kServers / 2;
  constexpr int kSlots = 16384;
  for (size_t i = 0; i < kServers; ++i) {
    Arguments flags = {"--save",
                       "",
                       "--cluster-enabled",
                       "yes",
                       "--cluster-port",
                       absl::StrCat(FreePort()),
                       "--cluster-node-timeout",
                       "1000",
                       "--repl-diskless-sync-delay",
                       "0"};
    flags.insert(flags.end(), arguments.begin(), arguments.end());
    servers_.push_back(std::make_unique<RedisOnPort>(RedisRole::kServer, flags));
  }
  const auto ask = [this](size_t i, const Arguments& command) {
    const auto said = servers_[i]->Ask(command);
    CHECK(said.ok()) << absl::StrJoin(command, " ") << ": " << said.status();
  };
  for (size_t i = 0; i < kServers; ++i) {
    ask(i, {"CLUSTER", "SET-CONFIG-EPOCH", absl::StrCat(i + 1)});
    if (i >= kMasters) continue;
    const int first = kSlots / static_cast<int>(kMasters) * static_cast<int>(i);
    const int last = i + 1 == kMasters ? kSlots - 1 : first + kSlots / static_cast<int>(kMasters) - 1;
    ask(i, {"CLUSTER", "ADDSLOTSRANGE", absl::StrCat(first), absl::StrCat(last)});
  }
  for (size_t i = 1; i < kServers; ++i) {
    const auto port = servers_[i]->Ask({"CONFIG", "GET", "cluster-port"});
    const std::vector<std::string> words = absl::StrSplit(*port, ' ');
    ask(0, {"CLUSTER", "MEET", "127.0.0.1", absl::StrCat(servers_[i]->port()), words.back()});
  }
  for (const auto& server : servers_) {
    CHECK(server->Await({"CLUSTER", "INFO"}, absl::StrCat("cluster_known_nodes:", kServers)));
    CHECK(server->Await({"CLUSTER", "INFO"}, "cluster_state:ok"));
  }
  for (size_t i = kMasters; i < kServers; ++i) {
    const std::string master = IdOf(i - kMasters);
    CHECK(Eventually([&] { return servers_[i]->Ask({"CLUSTER", "REPLICATE", master}).ok(); }));
  }
  for (size_t i = 0; i < kServers; ++i) {
    if (i >= kMasters) CHECK(servers_[i]->Await({"INFO", "replication"}, "master_link_status:up"));
    // All know all: else a replica of a master that dies is not voted for.
    CHECK(Eventually([&] {
      const auto nodes = servers_[i]->Ask({"CLUSTER", "NODES"});
      size_t replicas = 0;
      for (const absl::string_view line : absl::StrSplit(nodes.value_or(""), '\n')) {
        replicas += absl::StrContains(line, "slave") ? 1 : 0;
      }
      return replicas == kServers - kMasters;
    }));
  }
}

std::string RedisCluster::directory() const {
  return absl::StrCat("cluster://127.0.0.1:", servers_[0]->port(), ",127.0.0.1:", servers_[1]->port(),
                      ",127.0.0.1:", servers_[2]->port());
}

std::string RedisCluster::IdOf(size_t i) const { return *servers_[i]->Ask({"CLUSTER", "MYID"}); }

size_t RedisCluster::OwnerOf(const std::string& key, size_t witness) const {
  const auto slot = servers_[witness]->Ask({"CLUSTER", "KEYSLOT", key});
  const auto nodes = servers_[witness]->Ask({"CLUSTER", "NODES"});
  if (!slot.ok() || !nodes.ok()) return kServers;
  const int wanted = std::stoi(*slot);
  for (const absl::string_view line : absl::StrSplit(*nodes, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() < 9 || absl::StrContains(words[2], "fail")) continue;
    for (size_t i = 8; i < words.size() && words[i][0] != '['; ++i) {
      const std::vector<std::string> range = absl::StrSplit(words[i], '-');
      if (wanted < std::stoi(range.front()) || wanted > std::stoi(range.back())) continue;
      for (size_t server = 0; server < kServers; ++server) {
        if (absl::StrContains(words[1], absl::StrCat(":", servers_[server]->port(), "@"))) return server;
      }
    }
  }
  return kServers;
}

bool RedisCluster::AwaitOwnerOtherThan(const std::string& key, size_t before) const {
  return Eventually([&] {
    size_t owner = kServers;
    for (size_t i = 0; i < kServers; ++i) {
      if (!servers_[i]->started()) continue;
      const size_t said = OwnerOf(key, i);
      if (said == kServers && !servers_[i]->Ask({"PING"}).ok()) continue;  // it stands still
      if (said == kServers || said == before || (owner != kServers && said != owner)) return false;
      owner = said;
    }
    return owner != kServers;
  });
}

void RedisCluster::MoveSlot(const std::string& key, size_t to, const std::function<void()>& halfway) {
  const size_t from = OwnerOf(key, to);
  CHECK(from != kServers && from != to);
  const std::string slot = *servers_[to]->Ask({"CLUSTER", "KEYSLOT", key});
  CHECK(servers_[to]->Ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", IdOf(from)}).ok());
  CHECK(servers_[from]->Ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", IdOf(to)}).ok());
  const size_t keys = std::stoul(*servers_[from]->Ask({"CLUSTER", "COUNTKEYSINSLOT", slot}));
  const auto move = [&](size_t count) {
    const auto names = servers_[from]->Ask({"CLUSTER", "GETKEYSINSLOT", slot, absl::StrCat(count)});
    if (!names.ok() || names->empty()) return false;
    for (const std::string& name : std::vector<std::string>(absl::StrSplit(*names, ' '))) {
      const auto moved = servers_[from]->Ask(
          {"MIGRATE", "127.0.0.1", absl::StrCat(servers_[to]->port()), name, "0", "5000", "REPLACE"});
      CHECK(moved.ok()) << moved.status();
    }
    return true;
  };
  move(keys / 2 + 1);
  halfway();
  while (move(100)) {
  }
  // The next owner goes first, so that there is always one.
  for (const size_t server : {to, from}) {
    CHECK(servers_[server]->Ask({"CLUSTER", "SETSLOT", slot, "NODE", IdOf(to)}).ok());
  }
}

}  // namespace tokamak::directory::redis

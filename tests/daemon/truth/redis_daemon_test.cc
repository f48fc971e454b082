// tokd with a directory as people name it, and with a Redis as people run it: the password appears
// nowhere, and lost keys are restored.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/os/process/child_process.h"
#include "tests/daemon/tokd_process.h"
#include "tests/directory/redis_group.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {
namespace {

using directory::redis::RedisOnPort;
using directory::redis::RedisRole;

std::string Contents(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

class RedisDaemonTest : public testing::Test {
 protected:
  TokdProcess& Start(int index, std::vector<std::string> more) {
    for (const char* flag : {"--lease", "1s", "--grace", "2s", "--drain", "1s"}) more.emplace_back(flag);
    nodes_.push_back(std::make_unique<TokdProcess>(folder_, index, more));
    nodes_.back()->AwaitReady();
    return *nodes_.back();
  }
  static std::string At(const RedisOnPort& server) { return absl::StrCat("redis://localhost:", server.port()); }
  static bool IsIn(Client& client) { return Number(client, "directory_away") == 0; }

  const ShortFolder folder_;
  std::vector<std::unique_ptr<TokdProcess>> nodes_;
};

TEST_F(RedisDaemonTest, ThePasswordAppearsNowhere) {
  constexpr char kPassword[] = "Hush-4711";
  RedisOnPort server(RedisRole::kServer, {"--save", "", "--requirepass", kPassword});
  const std::string file = folder_.Path("password");
  std::ofstream(file) << kPassword << "\n";
  const std::vector<std::string> flags = {"--directory", At(server), "--redis-password-file", file};
  TokdProcess& node = Start(1, flags);
  Client client = node.Connect();
  ASSERT_TRUE(Eventually([&] { return IsIn(client); })) << node.log();
  ASSERT_TRUE(client.Put(ObjectId::FromName("x"), Pattern(100, 1)).ok());

  // With a wrong one, which is an error that talks about passwords.
  const std::string wrong = folder_.Path("wrong");
  std::ofstream(wrong) << kPassword << "-wrong\n";
  TokdProcess& locked_out = Start(2, {"--directory", At(server), "--redis-password-file", wrong});
  const std::string log = locked_out.log();
  const size_t ready = log.find(" ready: "), why = log.find("; not in a cluster yet: ", ready);
  EXPECT_NE(log.substr(0, log.find('\n', why)).find("WRONGPASS", why), std::string::npos) << log;

  os::ChildOptions print;
  print.argv = {"lib/daemon/tokd", "--listen",        "127.0.0.9:7000", "--device",    "soft:udp@127.0.0.9",
                "--socket",        folder_.Path("s"), "--print-config", "--directory", At(server)};
  print.environment = {{"TOKD_REDIS_PASSWORD", kPassword}};
  print.output = folder_.Path("printed");
  auto printed = os::ChildProcess::Start(print);
  ASSERT_TRUE(printed.ok()) << printed.status();
  ASSERT_TRUE((*printed)->Wait(base::Seconds(60)).ok());

  std::string numbers;
  const auto stats = client.NodeStats();
  ASSERT_TRUE(stats.ok());
  for (const NodeNumber& number : stats->numbers) absl::StrAppend(&numbers, number.name, " ");
  for (const std::string& text : {Contents(absl::StrCat("/proc/", node.pid(), "/cmdline")), node.log(),
                                  locked_out.log(), Contents(folder_.Path("printed")), numbers}) {
    EXPECT_FALSE(text.empty());
    EXPECT_FALSE(absl::StrContains(text, kPassword)) << text;
  }
  EXPECT_TRUE(absl::StrContains(Contents(folder_.Path("printed")), At(server)));
}

TEST_F(RedisDaemonTest, APasswordInTheUrlIsRefused) {
  TokdProcess node(folder_, 1, {"--directory", "redis://tokamak:Hush@localhost"});
  const Ended ended = node.AwaitEnd();
  EXPECT_EQ(ended.status.code, 2);
  EXPECT_EQ(ended.lines(), 1u) << ended.text;
  EXPECT_TRUE(absl::StrContains(ended.text, "--redis-password-file")) << ended.text;
  EXPECT_FALSE(absl::StrContains(ended.text, "Hush")) << ended.text;
}

TEST_F(RedisDaemonTest, ANodeThatServesTheDirectoryIsFoundByItsHostsName) {
  TokdProcess& serves = Start(1, {});
  Client put = serves.Connect();
  ASSERT_TRUE(put.Put(ObjectId::FromName("x"), Pattern(100, 1)).ok());
  const uint16_t port = testing_support::PlaceOfNode(1).listen.port;
  TokdProcess& asks = Start(2, {"--directory", absl::StrCat("tokd@localhost:", port)});
  Client get = asks.Connect();
  ASSERT_TRUE(Eventually([&] { return IsIn(get); })) << asks.log();
  EXPECT_TRUE(get.Get(ObjectId::FromName("x"), kPatience).ok());
}

class LostKeysTest : public RedisDaemonTest {
 protected:
  static constexpr int kObjects = 300;

  LostKeysTest() {
    for (int index : {1, 2}) {
      TokdProcess& node = Start(index, {"--directory", At(server_), "--memory", "64MiB"});
      clients_.push_back(node.Connect());
      EXPECT_TRUE(Eventually([&] { return IsIn(clients_.back()); })) << node.log();
    }
    for (int i = 0; i < kObjects; ++i) EXPECT_TRUE(clients_[0].Put(Id(i), Pattern(64, 1)).ok());
    EXPECT_TRUE(Eventually([&] { return Number(clients_[0], "directory_updates_behind") == 0; }));
  }
  static ObjectId Id(int i) { return ObjectId::FromName(absl::StrCat("object", i)); }
  static std::string KeyOf(int i) { return "tokamak:object:" + Id(i).ToHex(); }
  bool AllAreKnown() {
    for (int i = 0; i < kObjects; ++i) {
      if (*server_.Ask({"EXISTS", KeyOf(i)}) != "1") return false;
    }
    return true;
  }
  bool Logged(const std::string& text) {
    return Eventually([&] { return absl::StrContains(nodes_[0]->log(), text); });
  }

  RedisOnPort server_{RedisRole::kServer, {"--save", ""}};
  std::vector<Client> clients_;
};

TEST_F(LostKeysTest, KeysDeletedByHandAreRestored) {
  ASSERT_TRUE(AllAreKnown());
  for (int i = 0; i < 10; ++i) ASSERT_EQ(*server_.Ask({"DEL", KeyOf(i)}), "1");
  EXPECT_TRUE(Eventually([&] { return AllAreKnown(); })) << nodes_[0]->log();
  EXPECT_TRUE(Logged("the directory had lost 10 objects of this node, and is told again")) << nodes_[0]->log();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(clients_[1].Get(Id(i), kPatience).ok());
}

TEST_F(LostKeysTest, EverythingIsRestoredAfterFlushall) {
  ASSERT_EQ(*server_.Ask({"FLUSHALL"}), "OK");
  EXPECT_TRUE(Eventually([&] { return AllAreKnown(); })) << nodes_[0]->log();
  for (int i = 0; i < kObjects; i += 50) EXPECT_TRUE(clients_[1].Get(Id(i), kPatience).ok());
}

TEST_F(LostKeysTest, EvictedKeysAreRestoredAndTheLogNamesTheRemedy) {
  const auto set = [&](const char* name, const std::string& value) {
    ASSERT_EQ(*server_.Ask({"CONFIG", "SET", name, value}), "OK");
  };
  set("maxmemory-policy", "allkeys-random");
  set("maxmemory", "1");
  ASSERT_TRUE(server_.Await({"DBSIZE"}, "0"));
  EXPECT_TRUE(
      Logged("may evict what the directory knows (maxmemory-policy allkeys-random): set maxmemory-policy "
             "noeviction"))
      << nodes_[0]->log();
  EXPECT_TRUE(Logged("it has evicted ")) << nodes_[0]->log();
  set("maxmemory", "0");
  EXPECT_TRUE(Eventually([&] { return AllAreKnown(); })) << nodes_[0]->log();
  for (int i = 0; i < kObjects; i += 50) EXPECT_TRUE(clients_[1].Get(Id(i), kPatience).ok());
}

}  // namespace
}  // namespace tokamak::daemon

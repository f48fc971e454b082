// Whole tokd processes on a loopback of their own, used through the client library.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/client/protocol/frame.h"
#include "lib/os/sockets/unix_socket.h"
#include "tests/daemon/tokd_process.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {
namespace {

using Strings = std::vector<std::string>;

ObjectId Id(const std::string& name) { return ObjectId::FromName(name); }

class DaemonTest : public testing::Test {
 protected:
  TokdProcess& Start(int index, Strings more = {}) {
    if (index != 1) {
      for (const std::string& flag : DirectoryOfNode1()) more.push_back(flag);
    }
    nodes_.push_back(std::make_unique<TokdProcess>(folder_, index, more));
    nodes_.back()->AwaitReady();
    return *nodes_.back();
  }

  // Objects of all sizes from one node to the other by each protocol.
  void MoveAll(Client& from, Client& to) {
    const struct {
      Protocol protocol;
      const char* name;
    } protocols[] = {{Protocol::kEager, "eager"}, {Protocol::kRead, "read"}, {Protocol::kWrite, "write"}};
    for (const auto& by : protocols) {
      const std::string counter = absl::StrCat("pulled_by_", by.name, "_total");
      const uint64_t before = Number(to, counter);
      uint64_t moved = 0;
      for (const size_t size : {size_t{0}, size_t{1}, size_t{5000}, size_t{3} << 20}) {
        const ObjectId id = Id(absl::StrCat(by.name, size));
        const std::vector<uint8_t> data = Pattern(size, static_cast<uint8_t>(size));
        const std::vector<uint8_t> metadata = Pattern(33, 7);
        ASSERT_TRUE(from.Put(id, data, metadata).ok());
        const auto buffer = to.Get(id, kPatience, {by.protocol});
        ASSERT_TRUE(buffer.ok()) << by.name << " " << size << ": " << buffer.status();
        EXPECT_TRUE(Same(buffer->data(), data)) << by.name << " " << size;
        EXPECT_TRUE(Same(buffer->metadata(), metadata)) << by.name << " " << size;
        ++moved;
      }
      EXPECT_EQ(Number(to, counter), before + moved) << by.name;
    }
  }

  // SIGTERM for all, the directory last: exit code 0, and nothing but logs stays.
  void StopAll() {
    size_t logs = nodes_.size();
    while (!nodes_.empty()) {
      const Ended ended = nodes_.back()->Terminate();
      EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << "\n" << ended.text;
      nodes_.pop_back();
    }
    for (const std::string& file : folder_.Files()) EXPECT_NE(file.find(".log"), std::string::npos) << file;
    EXPECT_EQ(folder_.Files().size(), logs);
  }

  ShortFolder folder_;
  std::vector<std::unique_ptr<TokdProcess>> nodes_;
};

TEST_F(DaemonTest, ObjectsMoveByEachProtocolBothWays) {
  Client one = Start(1).Connect();
  Client two = Start(2).Connect();
  MoveAll(one, two);
  if (testing_support::OnSoftwareNic()) {
    EXPECT_GT(Number(two, "nic_packets_received_total"), 3 * (size_t{3} << 20) / 4096);
  }
  const std::vector<uint8_t> data = Pattern(100'000, 3);
  ASSERT_TRUE(two.Put(Id("back"), data).ok());
  const auto buffer = one.Get(Id("back"), kPatience);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_TRUE(Same(buffer->data(), data));
  StopAll();
}

// Three of twelve objects are large.
TEST_F(DaemonTest, SmallObjectsTakeTheShortWayAndEnginesShareBulk) {
  Client one = Start(1, {"--engines", "2"}).Connect();
  Client two = Start(2, {"--engines", "2"}).Connect();
  MoveAll(one, two);
  EXPECT_EQ(Number(two, "engine0_pulls_ok_total"), 9u);
  const uint64_t first = Number(two, "engine1_pulls_ok_total"), second = Number(two, "engine2_pulls_ok_total");
  EXPECT_EQ(first + second, 3u);
  EXPECT_EQ(std::max(first, second), 2u) << "in turn";
  StopAll();
}

TEST_F(DaemonTest, ANodeWithoutBulkEnginesUsesTheFirstEnginesOfOthers) {
  Client one = Start(1, {"--engines", "0"}).Connect();
  Client two = Start(2, {"--engines", "1"}).Connect();
  MoveAll(one, two);
  EXPECT_EQ(Number(two, "engine0_pulls_ok_total"), 12u);
  const std::vector<uint8_t> data = Pattern(size_t{3} << 20, 3);
  ASSERT_TRUE(two.Put(Id("back"), data).ok());
  const auto buffer = one.Get(Id("back"), kPatience);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_TRUE(Same(buffer->data(), data));
  EXPECT_TRUE(Eventually([&] { return Number(two, "engine0_serves_ok_total") == 1; })) << "it is told last";
  StopAll();
}

TEST_F(DaemonTest, TwoDevicesShareLargeTransfers) {
  if (!testing_support::OnSoftwareNic()) GTEST_SKIP() << "needs a second device for each node, found only on loopback";
  Client one = Start(1, {"--device", "soft:udp@127.0.0.1,soft:udp@127.0.1.1"}).Connect();
  Client two = Start(2, {"--device", "soft:udp@127.0.0.2,soft:udp@127.0.1.2"}).Connect();
  MoveAll(one, two);
  EXPECT_TRUE(Eventually([&] { return Number(two, "engine1_rails_joined_total") > 0; }));
  for (int i = 0; i < 2; ++i) {
    const ObjectId id = Id(absl::StrCat("large", i));
    const std::vector<uint8_t> data = Pattern(size_t{8} << 20, 9);
    ASSERT_TRUE(one.Put(id, data).ok());
    const auto buffer = two.Get(id, kPatience, {Protocol::kRead});
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_TRUE(Same(buffer->data(), data));
  }
  EXPECT_GE(Number(two, "engine1_rail1_bytes_total"), size_t{8} << 20) << "half of the two";
  EXPECT_GT(Number(one, "rail1_nic_packets_sent_total"), 0u);
  EXPECT_EQ(Number(two, "engine1_rails_lost_total"), 0u);
  StopAll();
}

TEST_F(DaemonTest, EveryRegistrationAndDetectionWorks) {
  Client one = Start(1, {"--registration", "cached", "--detection", "event", "--no-prefault"}).Connect();
  Client two = Start(2, {"--registration", "on_demand", "--detection", "adaptive:5us"}).Connect();
  MoveAll(one, two);
  StopAll();
}

TEST_F(DaemonTest, AGetWaitsForAnObjectThatIsPutElsewhereLater) {
  Client one = Start(1).Connect();
  Client two = Start(2).Connect();
  std::thread getter([&] {
    const auto buffer = two.Get(Id("late"), kPatience);
    EXPECT_TRUE(buffer.ok()) << buffer.status();
  });
  Client looker = nodes_[1]->Connect();
  EXPECT_TRUE(Eventually([&] { return Number(looker, "pulls_running") > 0; }));
  EXPECT_TRUE(one.Put(Id("late"), Pattern(1000, 1)).ok());
  getter.join();
  StopAll();
}

TEST_F(DaemonTest, DeleteReachesAllNodes) {
  Client one = Start(1).Connect();
  Client two = Start(2).Connect();
  ASSERT_TRUE(one.Put(Id("a"), Pattern(1000, 1)).ok());
  ASSERT_TRUE(two.Get(Id("a"), kPatience).ok());
  EXPECT_TRUE(Eventually([&] {
    const auto stat = one.Stat(Id("a"));
    return stat.ok() && stat->holders.size() == 2;
  }));
  const Status deleted = two.Delete(Id("a"));
  EXPECT_TRUE(deleted.ok()) << deleted;
  EXPECT_FALSE(*one.Contains(Id("a")));
  EXPECT_FALSE(*two.Contains(Id("a")));
  StopAll();
}

TEST_F(DaemonTest, AClientThatDiesInTheMiddleOfACreateLeavesNothing) {
  TokdProcess& tokd = Start(1);
  Client watcher = tokd.Connect();
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    auto doomed = Client::Connect(tokd.socket());
    if (!doomed.ok()) _exit(1);
    const auto half = doomed->Create(Id("half"), 1 << 20);
    if (!half.ok()) _exit(2);
    kill(getpid(), SIGKILL);
  }
  int how = 0;
  ASSERT_EQ(waitpid(pid, &how, 0), pid);
  ASSERT_TRUE(WIFSIGNALED(how)) << WEXITSTATUS(how);
  EXPECT_TRUE(Eventually([&] { return Number(watcher, "store_used_bytes") == 0; }));
  EXPECT_EQ(Number(watcher, "store_unsealed_objects"), 0u);
  EXPECT_EQ(Number(watcher, "store_quarantined_bytes"), 0u);
  EXPECT_TRUE(watcher.Put(Id("half"), Pattern(10, 1)).ok());
  StopAll();
}

TEST_F(DaemonTest, AClientThatOnlyLostItsConnectionCannotDamageWhatComesAfter) {
  TokdProcess& tokd = Start(1);
  Client watcher = tokd.Connect();
  {
    // A connection that ends without a word, of a program that lives on: this one.
    auto socket = os::UnixSocket::Connect(tokd.socket());
    ASSERT_TRUE(socket.ok()) << socket.status();
    client::CreateRequest create;
    create.id = Id("half");
    create.data_size = 1 << 20;
    ASSERT_TRUE(socket->Send(client::Encode(1, client::HelloRequest()), base::Seconds(60)).ok());
    ASSERT_TRUE(socket->Send(client::Encode(2, create), base::Seconds(60)).ok());
    ASSERT_TRUE(Eventually([&] { return Number(watcher, "store_unsealed_objects") == 1; }));
  }
  EXPECT_TRUE(Eventually([&] { return Number(watcher, "store_quarantined_bytes") == 1 << 20; }));
  EXPECT_EQ(Number(watcher, "store_unsealed_objects"), 0u);
  EXPECT_TRUE(watcher.Put(Id("half"), Pattern(10, 1)).ok()) << "its id is free";
  StopAll();
}

TEST_F(DaemonTest, ARestartedNodeIsANewLifeToTheDirectory) {
  Client one = Start(1).Connect();
  TokdProcess& first = Start(2);
  ASSERT_TRUE(first.Connect().Put(Id("gone"), Pattern(1000, 1)).ok());
  EXPECT_TRUE(Eventually([&] {
    const auto stat = one.Stat(Id("gone"));
    return stat.ok() && !stat->holders.empty();
  }));
  const auto life = [&] {
    uint64_t incarnation = 0;
    const auto nodes = one.Nodes();
    if (!nodes.ok()) return incarnation;
    for (const NodeInfo& node : *nodes) {
      if (node.name == "node2") incarnation = node.incarnation;
    }
    return incarnation;
  };
  const uint64_t before = life();
  EXPECT_NE(before, 0u);
  first.Kill();
  nodes_.pop_back();
  Client two = Start(2).Connect();
  EXPECT_TRUE(Eventually([&] { return life() > before; }));
  // Objects of the earlier life are forgotten, and the new one is served and serves.
  EXPECT_EQ(one.Stat(Id("gone")).status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(two.Put(Id("new"), Pattern(100'000, 2)).ok());
  const auto buffer = one.Get(Id("new"), kPatience);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_TRUE(Same(buffer->data(), Pattern(100'000, 2)));
  StopAll();
}

TEST_F(DaemonTest, AConnectedClientReportsAKilledDaemon) {
  TokdProcess& tokd = Start(1);
  Client client = tokd.Connect();
  tokd.Kill();
  EXPECT_EQ(client.Put(Id("a"), Pattern(10, 1)).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tokamak::daemon

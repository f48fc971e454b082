// Starts of tokd that must fail: exit code 2, one line that says what to do, nothing left behind.
// And ends that must be clean.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/os/file_descriptor.h"
#include "nlohmann/json.hpp"
#include "tests/daemon/tokd_process.h"

namespace tokamak::daemon {
namespace {

using Strings = std::vector<std::string>;

class DaemonStartTest : public testing::Test {
 protected:
  // Node 9 with these flags does not start: one line on standard error that has all `parts`, and no
  // file but its log.
  void ExpectRefused(const Strings& flags, const Strings& parts) {
    const Strings before = FilesButLog();
    TokdProcess tokd(folder_, 9, flags);
    const Ended ended = tokd.AwaitEnd();
    EXPECT_EQ(ended.status.code, 2) << ended.status.ToString();
    EXPECT_EQ(ended.lines(), 1u) << ended.text;
    EXPECT_TRUE(absl::StartsWith(ended.text, "tokd: ")) << ended.text;
    for (const std::string& part : parts)
      EXPECT_TRUE(absl::StrContains(ended.text, part)) << ended.text << " lacks " << part;
    EXPECT_EQ(FilesButLog(), before);
  }

  Strings FilesButLog() const {
    Strings files = folder_.Files();
    files.erase(std::remove(files.begin(), files.end(), "node9.log"), files.end());
    return files;
  }

  ShortFolder folder_;
};

TEST_F(DaemonStartTest, AnOccupiedUdpPortIsReported) {
  const os::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4791);
  address.sin_addr.s_addr = inet_addr("127.0.0.9");
  ASSERT_EQ(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ExpectRefused({}, {"127.0.0.9", "4791"});
}

TEST_F(DaemonStartTest, AnAddressOfAnotherMachineIsReported) {
  ExpectRefused({"--device", "soft:udp@192.0.2.1", "--listen", "192.0.2.1:7000", "--insecure"}, {"192.0.2.1"});
}

TEST_F(DaemonStartTest, AListenAddressOfAnotherDeviceIsReported) {
  ExpectRefused({"--listen", "127.0.0.8:7000"}, {"127.0.0.8"});
}

TEST_F(DaemonStartTest, AnOccupiedSocketIsReportedAndItsOwnerGoesOn) {
  TokdProcess owner(folder_, 1, {});
  owner.AwaitReady();
  ExpectRefused({"--socket", owner.socket()}, {owner.socket(), "stop it or choose another path"});
  Client client = owner.Connect();
  EXPECT_TRUE(client.Put(ObjectId::FromName("a"), Pattern(10, 1)).ok());
  EXPECT_EQ(owner.Terminate().status.code, 0);
}

TEST_F(DaemonStartTest, ASocketPathThatIsNoSocketIsReportedAndKept) {
  std::ofstream(folder_.Path("file")) << "kept";
  ExpectRefused({"--socket", folder_.Path("file")}, {"/file", "choose another path"});
  ExpectRefused({"--socket", folder_.Path("missing/tokd.sock")}, {"missing/tokd.sock"});
  ExpectRefused({"--socket", folder_.Path(std::string(120, 'x'))}, {"107 bytes"});
}

TEST_F(DaemonStartTest, ImpossibleMemoryIsReported) { ExpectRefused({"--memory", "4000TiB"}, {"memory"}); }

TEST_F(DaemonStartTest, DevicesThatCannotBeOpenedAreReported) {
  ExpectRefused({"--device", "hard:candy"}, {"hard:candy", "soft:udp@IP"});
  ExpectRefused({"--device", "soft:udp@nowhere"}, {"nowhere"});
  ExpectRefused({"--device", "ibv:none_such0"}, {"none_such0"});
  ExpectRefused({"--device", "ibv:"}, {"ibv:", "ibv:NAME"});
}

TEST_F(DaemonStartTest, AManagerThatADeviceDoesNotUseIsRefused) {
  ExpectRefused({"--cm", "tcp"}, {"--cm tcp", "soft:udp@127.0.0.9", "leave --cm out"});
}

TEST_F(DaemonStartTest, SoftwareIsNoRdmaWhereThatIsRequired) {
  ExpectRefused({"--require-rdma"}, {"--require-rdma", "soft:udp@127.0.0.9"});
}

TEST_F(DaemonStartTest, APcapFileThatCannotBeWrittenIsReported) {
  ExpectRefused({"--pcap", folder_.Path("missing/x.pcap")}, {"missing/x.pcap"});
  ExpectRefused({"--trace", folder_.Path("missing/x.json")}, {"cannot write", "missing/x.json"});
}

TEST_F(DaemonStartTest, AnotherLivingNodesNameEndsTheStart) {
  TokdProcess one(folder_, 1, {});
  one.AwaitReady();
  TokdProcess two(folder_, 2, DirectoryOfNode1());
  two.AwaitReady();
  const Strings before = FilesButLog();
  Strings flags = DirectoryOfNode1();
  flags.insert(flags.end(), {"--name", "node2"});
  TokdProcess three(folder_, 9, flags);
  const Ended ended = three.AwaitEnd();
  EXPECT_EQ(ended.status.code, 2) << ended.text;
  const size_t last = ended.text.rfind('\n', ended.text.size() - 2) + 1;
  EXPECT_TRUE(absl::StartsWith(ended.text.substr(last), "tokd: a node node2 is alive at ")) << ended.text;
  EXPECT_TRUE(absl::EndsWith(ended.text, ": stop it, or give this one another name\n")) << ended.text;
  EXPECT_FALSE(absl::StrContains(ended.text, " ready: ")) << ended.text;
  EXPECT_EQ(FilesButLog(), before);
  EXPECT_EQ(two.Connect().Nodes()->size(), 2u);
}

// Its own programs are served meanwhile, and it is in the cluster when there is one.
TEST_F(DaemonStartTest, ANodeWithoutItsDirectoryIsReadyAndReportsIt) {
  const Strings flags = DirectoryOfNode1();
  TokdProcess two(folder_, 2, flags);
  two.AwaitReady();
  const std::string place = flags.back().substr(flags.back().find('@') + 1);
  EXPECT_TRUE(absl::StrContains(two.log(), absl::StrCat("; not in a cluster yet: directory at ", place, ": ")))
      << two.log();
  Client client = two.Connect();
  EXPECT_TRUE(client.Put(ObjectId::FromName("a"), Pattern(10, 1)).ok());
  EXPECT_TRUE(client.Get(ObjectId::FromName("a"), kPatience).ok());
  TokdProcess one(folder_, 1, {});
  one.AwaitReady();
  EXPECT_FALSE(absl::StrContains(one.log(), "not in a cluster")) << one.log();
  EXPECT_TRUE(Eventually([&] { return absl::StrContains(two.log(), "node2 is in the directory"); })) << two.log();
}

TEST_F(DaemonStartTest, SigtermEndsItCleanly) {
  TokdProcess tokd(folder_, 1, {});
  tokd.AwaitReady();
  EXPECT_EQ(folder_.Files(), (Strings{"node1.log", "node1.sock", "node1.sock.lock"}));
  const Ended ended = tokd.Terminate();
  EXPECT_EQ(ended.status.code, 0) << ended.text;
  EXPECT_EQ(folder_.Files(), Strings{"node1.log"});
}

TEST_F(DaemonStartTest, SigintDoesTheSame) {
  TokdProcess tokd(folder_, 1, {});
  tokd.AwaitReady();
  tokd.Signal(SIGINT);
  EXPECT_EQ(tokd.AwaitEnd().status.code, 0);
  EXPECT_EQ(folder_.Files(), Strings{"node1.log"});
}

TEST_F(DaemonStartTest, SighupReadsItsFileAgainAndTheLogIsJson) {
  const std::string file = folder_.Path("tokd.json");
  std::ofstream(file) << R"({"quota": 0})";
  TokdProcess tokd(folder_, 1, {"--config", file, "--log-format", "json"});
  tokd.AwaitReady();
  Client client = tokd.Connect();
  EXPECT_TRUE(client.Create(ObjectId::FromName("a"), 2000).ok());

  std::ofstream(file) << R"({"quota": 1000, "lease": "20s"})";
  tokd.Signal(SIGHUP);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(tokd.log(), "to change lease"); })) << tokd.log();
  const auto more = client.Create(ObjectId::FromName("b"), 2000);
  EXPECT_EQ(more.status().code(), StatusCode::kResourceExhausted) << more.status();

  const Ended ended = tokd.Terminate();
  EXPECT_EQ(ended.status.code, 0) << ended.text;
  Strings messages;
  for (const absl::string_view line : absl::StrSplit(ended.text, '\n', absl::SkipEmpty())) {
    const auto event = nlohmann::json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(event.is_object()) << line;
    EXPECT_EQ(event["node"], "node1");
    EXPECT_TRUE(absl::StrContains(std::string(event["source"]), ".cc:")) << line;
    EXPECT_EQ(std::string(event["time"]).size(), std::string("2026-01-31T12:00:00.123456Z").size()) << line;
    messages.push_back(absl::StrCat(std::string(event["level"]), ": ", std::string(event["message"])));
  }
  EXPECT_NE(std::find(messages.begin(), messages.end(), "info: reload: changed quota"), messages.end()) << ended.text;
  EXPECT_NE(std::find(messages.begin(), messages.end(), "warning: reload: a restart is needed to change lease"),
            messages.end())
      << ended.text;
}

TEST_F(DaemonStartTest, AWrongFileChangesNothingAtSighup) {
  const std::string file = folder_.Path("tokd.json");
  std::ofstream(file) << R"({"quota": 0})";
  TokdProcess tokd(folder_, 1, {"--config", file});
  tokd.AwaitReady();
  Client client = tokd.Connect();
  ASSERT_TRUE(client.Put(ObjectId::FromName("a"), Pattern(100, 1)).ok());

  std::ofstream(file) << R"({"quota": 1e999})";
  tokd.Signal(SIGHUP);
  const std::string said = absl::StrCat("reload: nothing was changed: tokd: --config: ", file,
                                        ": it is no JSON that can be read: a number is out of range\n");
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(tokd.log(), said); })) << tokd.log();
  EXPECT_TRUE(client.Create(ObjectId::FromName("b"), 2000).ok());
  EXPECT_TRUE(client.Get(ObjectId::FromName("a"), kPatience).ok());
  EXPECT_EQ(tokd.Terminate().status.code, 0);
}

TEST_F(DaemonStartTest, ObjectsThatAStopWithoutEvacuationMayLoseAreCounted) {
  TokdProcess tokd(folder_, 1, {});
  tokd.AwaitReady();
  Client client = tokd.Connect();
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(client.Put(ObjectId::FromName(name), std::vector<uint8_t>(100)).ok());
  }
  const auto unsealed = client.Create(ObjectId::FromName("c"), 100);  // was nobody's yet
  ASSERT_TRUE(unsealed.ok()) << unsealed.status();
  const Ended ended = tokd.Terminate();
  EXPECT_TRUE(absl::StrContains(ended.text, "2 objects (200 B) put on this node: what no other node")) << ended.text;
}

TEST_F(DaemonStartTest, SigtermWhileItStartsEndsItCleanly) {
  TokdProcess tokd(folder_, 1, {"--memory", "256MiB"});
  ASSERT_TRUE(Eventually([&] { return folder_.Files().size() > 1; }));  // its socket or the lock
  const Ended ended = tokd.Terminate();
  EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << ended.text;
  EXPECT_EQ(folder_.Files(), Strings{"node1.log"});
}

TEST_F(DaemonStartTest, TwoSigtermsEndItAtOnceAlsoWithoutADirectory) {
  TokdProcess tokd(folder_, 2, {"--directory", "tokd@127.0.0.1:7000", "--drain", "10min"});
  tokd.AwaitReady();
  tokd.Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(tokd.log(), "draining") || !tokd.running(); }));
  if (tokd.running()) (void)kill(tokd.pid(), SIGTERM);
  EXPECT_EQ(tokd.AwaitEnd().status.code, 0);
  EXPECT_EQ(folder_.Files(), Strings{"node2.log"});
}

TEST_F(DaemonStartTest, AKilledOneIsReplacedOnTheSamePath) {
  {
    TokdProcess killed(folder_, 1, {});
    killed.AwaitReady();
    killed.Kill();
    EXPECT_EQ(folder_.Files(), (Strings{"node1.log", "node1.sock", "node1.sock.lock"}));
  }
  TokdProcess tokd(folder_, 1, {});
  tokd.AwaitReady();
  EXPECT_TRUE(tokd.Connect().Put(ObjectId::FromName("a"), Pattern(10, 1)).ok());
  EXPECT_EQ(tokd.Terminate().status.code, 0);
  EXPECT_EQ(folder_.Files(), Strings{"node1.log"});
}

}  // namespace
}  // namespace tokamak::daemon

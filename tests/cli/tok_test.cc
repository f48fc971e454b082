// The tok program against clusters that it starts itself, on a loopback of its own.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/base/version.h"
#include "nlohmann/json.hpp"
#include "tests/daemon/tokd_process.h"

namespace tokamak::cli {
namespace {

namespace fs = std::filesystem;
using daemon::kPatience;
using nlohmann::json;
using Strings = std::vector<std::string>;

class TokTest : public testing::Test {
 protected:
  ~TokTest() override {
    if (fs::exists(State())) Tok({"down"});
    EXPECT_FALSE(fs::exists(State()));
  }

  std::string State() const { return folder_.Path("st"); }
  std::string Path(const std::string& name) const { return folder_.Path(name); }
  void Make(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << text;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Runs tok on the state folder; its exit code, and in text_ what it said.
  int Tok(const Strings& arguments) {
    Strings argv = {"lib/cli/tok", "--state", State()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return Run(argv);
  }
  // Runs a command of the shell, in which $tok is tok on the state folder.
  int Shell(const std::string& command) {
    return Run({"/bin/sh", "-c", absl::StrCat("tok='lib/cli/tok --state ", State(), "'; ", command)});
  }
  int Run(const Strings& argv) {
    os::ChildOptions options;
    options.argv = argv;
    options.environment = environment_;
    options.output = Path("output");
    options.own_group = false;
    fs::remove(options.output);
    const auto process = os::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) return -1;
    const auto ended = (*process)->Wait(base::Seconds(60));
    text_ = Read(options.output);
    EXPECT_TRUE(ended.ok() && ended->signal == 0) << text_;
    return ended.ok() ? ended->code : -1;
  }
  void Do(const Strings& arguments) { ASSERT_EQ(Tok(arguments), 0) << text_; }
  json DoJson(Strings arguments) {
    arguments.insert(arguments.begin(), "--json");
    EXPECT_EQ(Tok(arguments), 0) << text_;
    return json::parse(text_, nullptr, /*allow_exceptions=*/false);
  }
  // Fails with this code and one line that has all parts.
  void ExpectFailure(int code, const Strings& arguments, const Strings& parts) {
    EXPECT_EQ(Tok(arguments), code) << text_;
    EXPECT_EQ(std::count(text_.begin(), text_.end(), '\n'), 1) << text_;
    EXPECT_TRUE(absl::StartsWith(text_, "tok: ")) << text_;
    for (const std::string& part : parts) EXPECT_TRUE(absl::StrContains(text_, part)) << text_ << " lacks " << part;
  }

  json Up(const Strings& more = {}) {
    Strings arguments = {"up", "--memory", "32MiB"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return DoJson(arguments);
  }

  daemon::ShortFolder folder_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::string text_;
};

// It names processes to be ended and files to be removed.
TEST_F(TokTest, AStateThatAnotherUserMayHaveWrittenIsNotTrusted) {
  Up({"--nodes", "1"});
  const std::string file = Path("st/cluster.json");
  for (const std::string& path : {file, State()}) {
    const fs::perms before = fs::status(path).permissions();
    fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
    ExpectFailure(2, {"ls"}, {path, "is not ours alone", "--state"});
    ExpectFailure(2, {"down"}, {path, "is not ours alone", "--state"});
    fs::permissions(path, before);
  }
  EXPECT_EQ(DoJson({"down"})["stopped"], 1);
}

TEST_F(TokTest, AClusterIsPrivateWhateverTheUmask) {
  EXPECT_EQ(Shell("umask 000 && $tok up --nodes 1 --memory 32MiB && $tok ls"), 0) << text_;
  Do({"down"});
}

// Other users of this machine reach its nodes' addresses, too.
TEST_F(TokTest, TheNodesOfAClusterKnowEachOtherByASecretThatGoesWithIt) {
  Up({"--nodes", "2"});
  const std::string secret = Path("st/secret");
  EXPECT_EQ(fs::status(secret).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const json ids = DoJson({"secret", "id", secret})["ids"];
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_TRUE(absl::StrContains(Read(Path("st/node2.log")), ids[0].get<std::string>()));
  Make("f", "text");
  Do({"put", Path("f"), "--as", "x"});
  Do({"--node", "2", "get", "x", "-o", Path("got")});
  EXPECT_EQ(Read(Path("got")), "text");
  EXPECT_GT(DoJson({"--node", "2", "stat"})["numbers"]["engine0_peers_proven_total"], 0);
  Do({"down"});
  EXPECT_FALSE(fs::exists(secret));
  Up({"--nodes", "1", "--tokd=--insecure"});
  EXPECT_FALSE(fs::exists(secret));
}

TEST_F(TokTest, ASecretIsMadeOnceAndNamed) {
  const std::string file = Path("secret");
  Do({"secret", "new", file});
  const std::string id = text_;
  EXPECT_EQ(id.size(), 17u) << id;
  Do({"secret", "id", file});
  EXPECT_EQ(text_, id);
  ExpectFailure(2, {"secret", "new", file}, {file, "exists"});
  ExpectFailure(2, {"secret", "new", Path("no/such")}, {Path("no/such")});
  ExpectFailure(2, {"secret", "id"}, {"give the file"});
  ExpectFailure(1, {"secret", "id", Path("missing")}, {Path("missing"), "No such file"});
  ExpectFailure(2, {"secret", "make"}, {"make"});
  ASSERT_EQ(Shell(absl::StrCat("umask 077 && $tok secret new > ", Path("printed"))), 0);
  EXPECT_EQ(std::count(id.begin(), id.end(), ' '), 0);
  Do({"secret", "id", Path("printed")});
  EXPECT_NE(text_, id) << "another one";
}

TEST_F(TokTest, FilesGoInOnOneNodeAndComeOutOnAnother) {
  const json up = Up({"--nodes", "2"});
  ASSERT_EQ(up["nodes"].size(), 2u);
  EXPECT_EQ(up["state"], State());
  Make("greeting", "hello");
  Make("d/a", "1");
  Make("d/b/c", "22");
  const json put = DoJson({"put", Path("greeting")});
  EXPECT_EQ(put["name"], "greeting");
  EXPECT_EQ(put["bytes"], 5);
  EXPECT_EQ(DoJson({"put", Path("d") + "/", "--as", "tree"})["files"], 2);
  for (const char* protocol : {"eager", "read", "write", "auto"}) {
    const std::string output = Path(absl::StrCat("out-", protocol));
    EXPECT_EQ(DoJson({"--node", "2", "get", "greeting", "-o", output, "--protocol", protocol})["bytes"], 5);
    EXPECT_EQ(Read(output), "hello");
  }
  Do({"--node", "2", "get", "tree", "-o", Path("e")});
  EXPECT_EQ(Read(Path("e/b/c")), "22");

  // Copies have the names as well.
  for (const char* node : {"1", "2"}) {
    EXPECT_EQ(DoJson({"--node", node, "ls", "-q"}), (json{"greeting", "tree", "tree/a", "tree/b/c"})) << node;
  }
  EXPECT_EQ(DoJson({"--node", "2", "ls", "-q", "tree/"}), (json{"tree/a", "tree/b/c"}));
  Make("only there", "1");
  Do({"--node", "node2", "put", Path("only there")});
  EXPECT_EQ(DoJson({"stat", "only there"})["name"], "only there") << "as the directory says";
  Do({"rm", "only there"});
  const json stat = DoJson({"stat", "greeting"});
  EXPECT_EQ(stat["name"], "greeting");
  EXPECT_EQ(stat["here"], true);
  EXPECT_EQ(stat["data_bytes"], 5);
  EXPECT_EQ(stat["holders"].size(), 2u);
  EXPECT_EQ(DoJson({"stat"})["node"], "node1");
  EXPECT_GT(DoJson({"--node", "2", "stat"})["numbers"]["pulled_objects_total"], 0);
  const json nodes = DoJson({"nodes"});
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0]["name"], "node1");
  EXPECT_EQ(nodes[0]["is_this"], true);

  // For people.
  Do({"ls"});
  EXPECT_TRUE(absl::StrContains(text_, "OBJECT") && absl::StrContains(text_, "greeting")) << text_;
  Do({"nodes"});
  EXPECT_TRUE(absl::StrContains(text_, "soft:udp@127.0.0.2")) << text_;
  Do({"stat", "greeting"});
  EXPECT_TRUE(absl::StrContains(text_, "node1, node2")) << text_;

  EXPECT_EQ(DoJson({"rm", "tree"})["objects"], 3);
  Do({"rm", "greeting"});
  EXPECT_EQ(DoJson({"--node", "2", "ls"}).size(), 0u);
  ExpectFailure(1, {"stat", "greeting"}, {"greeting"});

  const json down = DoJson({"down"});
  EXPECT_EQ(down["stopped"], 2);
  for (const json& node : up["nodes"]) EXPECT_NE(kill(node["pid"], 0), 0) << "still runs";
  EXPECT_FALSE(fs::exists(State()));
}

TEST_F(TokTest, ObjectsAreBroughtPinnedAndPushedWithTheFilesOfAFolder) {
  Up({"--nodes", "2"});
  Make("d/a", "1");
  Make("d/b/c", "22");
  Do({"put", Path("d"), "--as", "tree"});
  EXPECT_EQ(DoJson({"--node", "2", "prefetch", "tree"})["objects"], 3);
  EXPECT_EQ(DoJson({"--node", "2", "ls"}).size(), 3u);
  EXPECT_EQ(DoJson({"--node", "2", "pin", "tree/a"})["objects"], 1);
  EXPECT_EQ(DoJson({"--node", "2", "stat", "tree/a"})["pinned"], true);
  EXPECT_EQ(DoJson({"--node", "2", "unpin", "tree"})["objects"], 3) << "those that were not pinned, too";
  EXPECT_EQ(DoJson({"--node", "2", "stat", "tree/a"})["pinned"], false);

  Make("more", "3");
  Do({"--node", "2", "put", Path("more")});
  Do({"--node", "2", "push", "more", "--to", "node1"});
  EXPECT_TRUE(absl::StrContains(text_, "pushed to node1 more")) << text_;
  EXPECT_EQ(DoJson({"stat", "more"})["here"], true);
  ExpectFailure(1, {"push", "more", "--to", "node9"}, {"more", "node9", "tok nodes"});
  ExpectFailure(1, {"prefetch", "nowhere", "--timeout", "50ms"}, {"nowhere"});
  ExpectFailure(2, {"pin", "more", "--timeout", "soon"}, {"--timeout", "soon"});
  ExpectFailure(1, {"unpin", "nowhere"}, {"nowhere"});
  Do({"down"});
}

// The time-out counts from when something came last.
TEST_F(TokTest, AGetOverASlowLinkLastsAsLongAsBytesCome) {
  DoJson({"up", "--nodes", "2", "--memory", "128MiB", "--tokd=--congestion=dcqcn:100Mb/s"});
  Make("large", std::string(24 << 20, 'x'));
  const auto link_seconds = std::chrono::duration<double>((24 << 20) * 8 / 100e6);
  // By read nothing has come before the first of 8 requests of 1 MiB that are under way has all.
  for (const char* protocol : {"eager", "read"}) {
    Do({"put", Path("large"), "--as", protocol});
    const auto began = std::chrono::steady_clock::now();
    Do({"--node", "2", "get", protocol, "-o", Path("out"), "--protocol", protocol, "--timeout", "1500ms"});
    EXPECT_GT(std::chrono::steady_clock::now() - began, link_seconds * 0.9) << "the link is not slow";
    EXPECT_EQ(Run({"cmp", Path("out"), Path("large")}), 0) << text_;
  }
  const auto began = std::chrono::steady_clock::now();
  ExpectFailure(1, {"get", "nothing", "--timeout", "200ms"}, {"nothing", "no node"});
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(200));
  Do({"down"});
}

// As two users have, and one with two state folders.
TEST_F(TokTest, TwoClustersStandBesideEachOther) {
  Up({"--nodes", "1"});
  const Strings other = {"lib/cli/tok", "--state", Path("other")};
  const auto also = [&](Strings arguments) {
    arguments.insert(arguments.begin(), other.begin(), other.end());
    return Run(arguments);
  };
  EXPECT_EQ(also({"up", "--nodes", "1", "--memory", "32MiB"}), 0) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "1 node is up; stop it with tok down")) << text_;
  Make("a", "text");
  Do({"put", Path("a")});
  EXPECT_EQ(also({"get", "a", "--timeout", "100ms", "-o", Path("b")}), 1) << text_;
  EXPECT_EQ(also({"down"}), 0) << text_;
  Do({"down"});
}

TEST_F(TokTest, AnUpThatIsInterruptedStopsWhatItStarted) {
  os::ChildOptions options;
  options.argv = {"lib/cli/tok", "--state", State(), "up", "--nodes", "2", "--memory", "32MiB"};
  options.output = Path("output");
  auto tok = os::ChildProcess::Start(options);
  ASSERT_TRUE(tok.ok()) << tok.status();
  ASSERT_TRUE(daemon::Eventually([&] { return fs::exists(Path("st/cluster.json")); }));
  ASSERT_TRUE((*tok)->Signal(SIGINT).ok());
  const auto ended = (*tok)->Wait(base::Seconds(60));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->signal, SIGINT);
  EXPECT_EQ(Read(Path("output")), "tok: interrupted; what was started has been stopped\n");
  EXPECT_FALSE(fs::exists(State()));
}

// On a terminal; elsewhere it is silent.
TEST_F(TokTest, AWaitingGetNamesItsObject) {
  Up({"--nodes", "1"});
  EXPECT_EQ(Shell("script -qec \"$tok get tpyo --timeout 2s\" /dev/null"), 1);
  EXPECT_TRUE(absl::StrContains(text_, "tok: tpyo: no node holds it yet")) << text_;
  ExpectFailure(1, {"get", "tpyo", "--timeout", "1500ms"}, {"tpyo", "no node"});
  Do({"down"});
}

TEST_F(TokTest, StandardInputAndPipesArePutToTheirEnd) {
  Up({"--nodes", "1"});
  ASSERT_EQ(Shell("printf %0100000d 7 | $tok put - --as piped && $tok get piped -o - | tail -c 1"), 0) << text_;
  EXPECT_TRUE(absl::StrContains(text_, "put piped: 1 file")) << text_;
  EXPECT_EQ(Run({"bash", "-c", absl::StrCat("lib/cli/tok --state ", State(), " put <(echo hello) --as said")}), 0)
      << text_;
  ASSERT_EQ(Shell("$tok get said -o - 2>/dev/null"), 0);
  EXPECT_EQ(text_, "hello\n");
  ExpectFailure(1, {"put", "-"}, {"- has no name that an object could have", "--as"});
  Do({"down"});
}

TEST_F(TokTest, ASecondUpIsRefusedAndTheFirstGoesOn) {
  Up({"--nodes", "1"});
  ExpectFailure(2, {"up"}, {"runs already", "tok down", "--state"});
  Do({"nodes"});
  Do({"down"});
  ExpectFailure(2, {"down"}, {"tok up"});
}

TEST_F(TokTest, ADirectoryInRedisWorksAndGoesWithTheCluster) {
  const json up = Up({"--nodes", "2", "--directory", "redis"});
  ASSERT_EQ(up["nodes"].size(), 2u);
  Make("a", "text");
  Do({"put", Path("a")});
  Do({"--node", "2", "get", "a", "-o", Path("b")});
  EXPECT_EQ(Read(Path("b")), "text");
  EXPECT_EQ(DoJson({"down"})["stopped"], 3);
}

TEST_F(TokTest, AClusterWhoseNodesWereKilledIsReplaced) {
  const json up = Up({"--nodes", "2"});
  for (const json& node : up["nodes"]) {
    ASSERT_EQ(kill(node["pid"], SIGKILL), 0);
    ASSERT_TRUE(daemon::Eventually([&] {
      const std::string stat = Read(absl::StrCat("/proc/", node["pid"].get<int>(), "/stat"));
      return stat.empty() || absl::StrContains(stat, ") Z ");
    }));
  }
  EXPECT_EQ(Up({"--nodes", "2"})["nodes"].size(), 2u);
  EXPECT_EQ(DoJson({"down"})["stopped"], 2);
}

TEST_F(TokTest, AClusterThatCannotStartLeavesNothing) {
  ExpectFailure(2, {"up", "--memory", "lots"}, {"node1", "--memory"});
  EXPECT_FALSE(fs::exists(State()));
  // The first node starts, the second does not.
  ExpectFailure(2, {"up", "--nodes", "2", "--memory", "32MiB", "--tokd=--pcap=/%"}, {"node1"});
  EXPECT_FALSE(fs::exists(State()));
}

TEST_F(TokTest, MissingFoldersAboveTheStateFolderAreMadeAndRemovedAgain) {
  const auto tok = [&](const Strings& arguments) {
    Strings argv = {"lib/cli/tok", "--state", Path("new/deeper/st")};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return Run(argv);
  };
  EXPECT_EQ(tok({"up", "--nodes", "1"}), 0) << text_;
  EXPECT_EQ(tok({"nodes"}), 0) << text_;
  EXPECT_EQ(tok({"down"}), 0) << text_;
  EXPECT_FALSE(fs::exists(Path("new")));

  EXPECT_EQ(tok({"up", "--memory", "lots"}), 2) << text_;
  EXPECT_FALSE(fs::exists(Path("new")));

  fs::create_directory(Path("new"));
  EXPECT_EQ(tok({"up", "--nodes", "1"}), 0) << text_;
  Make("new/deeper/mine", "kept");
  EXPECT_EQ(tok({"down"}), 0) << text_;
  EXPECT_EQ(Read(Path("new/deeper/mine")), "kept");
  EXPECT_FALSE(fs::exists(Path("new/deeper/st")));
  fs::remove(Path("new/deeper/mine"));
  EXPECT_EQ(tok({"up", "--nodes", "1"}), 0) << text_;
  EXPECT_EQ(tok({"down"}), 0) << text_;
  EXPECT_TRUE(fs::exists(Path("new/deeper")));  // was there
  fs::remove_all(Path("new"));
}

TEST_F(TokTest, FilesOfOthersInTheStateFolderStay) {
  fs::create_directory(State());
  fs::permissions(State(), fs::perms::owner_all);
  Make("st/mine.log", "kept");
  Make("st/mine.sock", "kept");
  Up({"--nodes", "1"});
  Do({"down"});
  EXPECT_EQ(Read(Path("st/mine.log")), "kept");
  EXPECT_TRUE(fs::exists(Path("st/mine.sock")));
  EXPECT_FALSE(fs::exists(Path("st/node1.log")));
  EXPECT_FALSE(fs::exists(Path("st/cluster.json")));
  fs::remove_all(State());
}

TEST_F(TokTest, ADamagedStateIsNamed) {
  fs::create_directory(State());
  fs::permissions(State(), fs::perms::owner_all);
  for (const char* text : {"", "{", "[]", R"({"nodes": 7})", R"({"nodes": [], "helpers": [7]})",
                           R"({"nodes": [], "helpers": [], "folders": ["/elsewhere"]})",
                           R"({"nodes": [{"name": 1, "pid": "x"}], "helpers": []})"}) {
    Make("st/cluster.json", text);
    for (const char* command : {"nodes", "up", "down"}) {
      ExpectFailure(2, {command}, {Path("st/cluster.json"), "damaged", "remove the file"});
    }
    EXPECT_EQ(Read(Path("st/cluster.json")), text);
  }
  fs::remove_all(State());
}

TEST_F(TokTest, EveryErrorIsOneLineAndAnExitCode) {
  const json up = Up({"--nodes", "2"});
  Make("greeting", "hello");
  Make("bad\xff", "odd");

  // Names and paths of any bytes.
  ExpectFailure(1, {"put", ""}, {"empty path", "FILE"});
  ExpectFailure(1, {"put", Path("bad\xff")}, {"bad\\xff", "--as"});
  EXPECT_EQ(DoJson({"put", Path("bad\xff"), "--as", "odd"})["path"], Path("bad\\xff"));
  Do({"put", Path("greeting"), "--as", "esc\x1b[2J\nape"});
  EXPECT_TRUE(absl::StrContains(text_, "put esc\\x1b[2J\\x0aape: ")) << text_;
  EXPECT_EQ(DoJson({"stat", "esc\x1b[2J\nape"})["name"], "") << "it can be got, and is not kept to be shown";
  Do({"get", "esc\x1b[2J\nape", "-o", Path("escaped")});
  EXPECT_EQ(Read(Path("escaped")), "hello");
  EXPECT_EQ(Run({"lib/cli/tok", "--state", Path("s\xff"), "up"}), 2);
  EXPECT_TRUE(absl::StrContains(text_, "s\\xff is not UTF-8")) << text_;

  // Errors as JSON.
  EXPECT_EQ(Tok({"--json", "stat", "missing"}), 1);
  EXPECT_EQ(json::parse(text_, nullptr, false)["error"], "NOT_FOUND") << text_;
  EXPECT_EQ(Tok({"--json", "frobnicate"}), 2);
  EXPECT_EQ(json::parse(text_, nullptr, false)["error"], "INVALID_ARGUMENT") << text_;

  // Several at once: what fails does not stop the others.
  EXPECT_EQ(Tok({"put", Path("greeting"), Path("missing"), Path("st/node1.log")}), 1);
  EXPECT_TRUE(absl::StrContains(text_, "put greeting: 1 file") && absl::StrContains(text_, Path("missing")) &&
              absl::StrContains(text_, "put node1.log: 1 file") && absl::StrContains(text_, "could not put 1 of 3"))
      << text_;
  EXPECT_EQ(Tok({"rm", "missing", "node1.log"}), 1);
  EXPECT_TRUE(absl::StrContains(text_, "removed node1.log\n")) << text_;

  // Standard output.
  EXPECT_EQ(Shell(absl::StrCat("$tok get greeting -o - > ", Path("data"), " 2> ", Path("said"))), 0);
  EXPECT_EQ(Read(Path("data")), "hello");
  EXPECT_EQ(Read(Path("said")), "got greeting: 1 file, 5 B\n");
  for (const char* command : {"ls", "--json ls", "nodes", "stat", "put /proc/version", "--help", "--version"}) {
    EXPECT_EQ(Shell(absl::StrCat("$tok ", command, " > /dev/full")), 1) << command;
    EXPECT_TRUE(absl::StrContains(text_, "cannot write to standard output")) << command << ": " << text_;
    EXPECT_EQ(Shell(absl::StrCat("$tok ", command, " >&-")), 1) << command;
  }
  EXPECT_EQ(Shell("$tok get greeting -o - > /dev/full"), 1);
  EXPECT_TRUE(absl::StrContains(text_, "No space left")) << text_;

  // All of a kind.
  Do({"put", Path("greeting"), "--as", "kind/a"});
  Do({"put", Path("greeting"), "--as", "kind/b"});
  EXPECT_EQ(DoJson({"rm", "--prefix", "kind/"})["objects"], 2);
  EXPECT_EQ(Tok({"--node", "2", "get", "kind/a", "-o", Path("x"), "--timeout", "10ms"}), 1);
  ExpectFailure(2, {"rm"}, {"name", "--prefix"});
  ExpectFailure(2, {"rm", "--prefix", ""}, {"--prefix"});
  ExpectFailure(2, {"rm", "x", "--prefix", "y"}, {"--prefix"});

  // Which daemon: a flag is worth more than the environment.
  environment_ = {{"TOKAMAK_SOCKET", up["nodes"][0]["socket"]}};
  EXPECT_EQ(DoJson({"--node", "2", "stat"})["node"], "node2");
  EXPECT_EQ(Run({"lib/cli/tok", "--json", "stat"}), 0);
  EXPECT_EQ(json::parse(text_, nullptr, false)["node"], "node1") << text_;
  ExpectFailure(2, {"--socket", Path("none"), "--node", "2", "stat"}, {"--socket", "--node"});

  ASSERT_EQ(Tok({"--version"}), 0);
  EXPECT_EQ(text_, absl::StrCat("tok ", base::kVersion, "\n"));
  Do({"down"});
}

TEST_F(TokTest, FlagsReachEachDaemonWithItsName) {
  Up({"--nodes", "2", absl::StrCat("--tokd=--pcap=", Path("%.pcap")), "--tokd=--engines=2"});
  EXPECT_TRUE(DoJson({"stat"})["numbers"].contains("engine1_pulls_ok_total"));
  Do({"down"});
  EXPECT_GT(fs::file_size(Path("node1.pcap")), 100u);
  EXPECT_GT(fs::file_size(Path("node2.pcap")), 100u);
}

TEST_F(TokTest, WrongUseIsReportedInOneLine) {
  ExpectFailure(2, {}, {"give a command: up, down,", "tok --help"});
  ExpectFailure(2, {"frobnicate"}, {"there is no command frobnicate (see tok --help)"});
  ExpectFailure(2, {"lss"}, {"did you mean ls?", "tok --help"});
  ExpectFailure(2, {"help", "lss"}, {"did you mean ls?", "tok --help"});
  ExpectFailure(2, {"--node", "node", "ls"}, {"'node' is no node", "node1, node2..."});
  ExpectFailure(2, {"up", "--noeds", "2"}, {"there is no flag --noeds; did you mean --nodes?"});
  ExpectFailure(2, {"put"}, {"path", "tok --help"});
  ExpectFailure(2, {"get", "x", "--protocol", "pigeon"}, {"--protocol", "eager"});
  ExpectFailure(2, {"up", "--nodes", "0"}, {"--nodes"});
  ExpectFailure(2, {"up", "--directory", "paper"}, {"--directory", "redis"});
  ExpectFailure(2, {"ls"}, {"tok up", "--socket"});
  ExpectFailure(2, {"--socket", Path("none"), "ls"}, {Path("none")});
  ExpectFailure(2, {"--socket", Path("none"), "get", "x", "--timeout", "soon"}, {"soon"});
}

TEST_F(TokTest, HelpFitsIntoEightyColumns) {
  Do({"--help"});
  Strings commands = {"--help"};
  for (const absl::string_view line : absl::StrSplit(text_.substr(text_.find("Subcommands:")), '\n')) {
    if (absl::StartsWith(line, "  ") && line.size() > 2 && line[2] != ' ' && absl::StrContains(line, "   ")) {
      commands.push_back(std::string(*absl::StrSplit(line.substr(2), ' ').begin()));
    }
  }
  EXPECT_GT(commands.size(), 15u);
  for (const std::string& command : commands) {
    Do(command == "--help" ? Strings{command} : Strings{"help", command});
    for (const absl::string_view line : absl::StrSplit(text_, '\n')) {
      EXPECT_LE(line.size(), 80u) << command << ": " << line;
    }
  }
}

TEST_F(TokTest, HelpNamesEveryCommand) {
  Do({"--help"});
  for (const char* word : {"up", "down", "demo", "put", "get", "ls", "stat", "rm", "nodes", "--socket", "--state",
                           "--node", "--json", "TOKAMAK_SOCKET", "Exit codes"}) {
    EXPECT_TRUE(absl::StrContains(text_, word)) << word;
  }
}

}  // namespace
}  // namespace tokamak::cli

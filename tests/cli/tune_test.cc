// tok tune between two real daemons: the file that it writes is one that tokd loads.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/daemon/flags/policy_file.h"
#include "nlohmann/json.hpp"
#include "tests/daemon/tokd_process.h"

namespace tokamak::cli {
namespace {

using daemon::DirectoryOfNode1;
using daemon::kPatience;
using daemon::TokdProcess;
using nlohmann::json;
using Strings = std::vector<std::string>;

class TuneTest : public testing::Test {
 protected:
  void Start(const Strings& more = {}) {
    one_ = std::make_unique<TokdProcess>(folder_, 1, more);
    one_->AwaitReady();
    Strings flags = DirectoryOfNode1();
    flags.insert(flags.end(), more.begin(), more.end());
    two_ = std::make_unique<TokdProcess>(folder_, 2, flags);
    two_->AwaitReady();
  }

  std::string Path(const std::string& name) const { return folder_.Path(name); }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  // Its exit code, and in text_ what it said.
  int Tok(Strings arguments) {
    os::ChildOptions options;
    options.argv = {"lib/cli/tok"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.output = Path("output");
    options.own_group = false;
    std::filesystem::remove(options.output);
    const auto process = os::ChildProcess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) return -1;
    const auto ended = (*process)->Wait(base::Seconds(60));
    text_ = Read(options.output);
    return ended.ok() ? ended->code : -1;
  }
  void ExpectFailure(int code, const Strings& arguments, const Strings& parts) {
    EXPECT_EQ(Tok(arguments), code) << text_;
    EXPECT_EQ(std::count(text_.begin(), text_.end(), '\n'), 1) << text_;
    for (const std::string& part : parts) EXPECT_TRUE(absl::StrContains(text_, part)) << text_ << " lacks " << part;
  }

  daemon::ShortFolder folder_;
  std::unique_ptr<TokdProcess> one_, two_;
  std::string text_;
};

TEST_F(TuneTest, WritesATableThatTokdLoadsAndLeavesNothingBehind) {
  Start();
  const std::string file = Path("policy.json");
  ASSERT_EQ(Tok({"--socket", two_->socket(), "tune", "--peer-socket", one_->socket(), "--budget", "2s", "--largest",
                 "256KiB", "-o", file}),
            0)
      << text_;
  for (const char* part : {"SIZE", "EAGER", "256 KiB", "policy ", "tokd --policy"}) {
    EXPECT_TRUE(absl::StrContains(text_, part)) << text_ << " lacks " << part;
  }
  for (TokdProcess* node : {one_.get(), two_.get()}) {
    Client client = node->Connect();
    const auto objects = client.List();
    ASSERT_TRUE(objects.ok()) << objects.status();
    EXPECT_TRUE(objects->empty()) << objects->size() << " are left";
  }
  const auto read = daemon::ParsePolicyFile(Read(file));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_TRUE(read->measured.has_value());
  EXPECT_NE(read->measured->puller.node, read->measured->holder.node);
  EXPECT_FALSE(read->measured->puller.device.empty());
  const json measured = json::parse(Read(file))["measured"];
  ASSERT_EQ(measured["sizes"].size() >= 9, true) << measured;
  EXPECT_EQ(measured["sizes"][0]["bytes"], 1024);
  for (const char* protocol : {"eager", "read", "write"}) {
    EXPECT_GT(measured["sizes"][0][protocol]["median_us"], 0);
    EXPECT_GE(measured["sizes"][0][protocol]["samples"], 5);
  }

  TokdProcess three(folder_, 3, [&] {
    Strings flags = DirectoryOfNode1();
    flags.insert(flags.end(), {"--policy", file});
    return flags;
  }());
  three.AwaitReady();
  EXPECT_TRUE(
      absl::StrContains(three.log(), absl::StrCat("policy: ", read->policy.ToString(), ", ", file, ", measured ")))
      << three.log();
}

// As on two machines: each program knows the socket of its own node.
TEST_F(TuneTest, TheOtherNodeMayBeServedByAnotherTok) {
  Start();
  os::ChildOptions options;
  options.argv = {"lib/cli/tok", "--socket", one_->socket(), "tune", "--serve"};
  options.output = Path("served");
  options.own_group = false;
  const auto server = os::ChildProcess::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  ASSERT_TRUE(daemon::Eventually([&] { return absl::StrContains(Read(options.output), "tok tune --peer"); }));
  const std::string name = one_->Connect().node();
  const std::string file = Path("policy.json");
  EXPECT_EQ(
      Tok({"--socket", two_->socket(), "tune", "--peer", name, "--budget", "2s", "--largest", "64KiB", "-o", file}), 0)
      << text_;
  const auto ended = (*server)->Wait(base::Seconds(60));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->code, 0) << Read(options.output);
  EXPECT_TRUE(absl::StrContains(Read(options.output), "served")) << Read(options.output);
  const auto read = daemon::ParsePolicyFile(Read(file));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->measured->holder.node, name);
  for (TokdProcess* node : {one_.get(), two_.get()}) {
    Client client = node->Connect();
    const auto objects = client.List();
    ASSERT_TRUE(objects.ok()) << objects.status();
    EXPECT_TRUE(objects->empty()) << objects->size() << " are left";
  }
}

TEST_F(TuneTest, AFailedTuneWithoutAServerLeavesNothing) {
  Start();
  ExpectFailure(1, {"--socket", two_->socket(), "tune", "--peer", one_->Connect().node()}, {"tok tune --serve"});
  const auto objects = two_->Connect().List();
  ASSERT_TRUE(objects.ok()) << objects.status();
  EXPECT_TRUE(objects->empty());
}

TEST_F(TuneTest, AStoreWithoutRoomIsReportedAtOnceAndNothingIsLeft) {
  Start();
  const Strings tune = {"--socket", two_->socket(), "tune", "--peer-socket", one_->socket(), "--budget", "2s"};
  for (TokdProcess* full : {one_.get(), two_.get()}) {
    Client client = full->Connect();
    PutOptions now;
    now.timeout = {};
    size_t put = 0;
    while (client.Put(ObjectId::FromName(absl::StrCat("object ", put)), daemon::Pattern(1 << 20, 1), {}, now).ok())
      ++put;
    const auto begin = std::chrono::steady_clock::now();
    ExpectFailure(1, tune, {client.node(), "has room for ", "a test object takes 4 MiB", "--largest"});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience / 4) << "nothing was waited for";
    EXPECT_EQ(client.List()->size(), put);
    for (size_t i = 0; i < put; ++i) ASSERT_TRUE(client.Delete(ObjectId::FromName(absl::StrCat("object ", i))).ok());
  }
  EXPECT_TRUE(one_->Connect().List()->empty());
  EXPECT_TRUE(two_->Connect().List()->empty());
}

TEST_F(TuneTest, AnAdaptiveNodeCountsItsTrials) {
  Start({"--policy", "adaptive:eager:1KiB,read"});
  EXPECT_TRUE(absl::StrContains(one_->log(), "policy: adaptive, begins with eager:1KiB,read, as given")) << one_->log();
  Client from = one_->Connect(), to = two_->Connect();
  const std::vector<uint8_t> bytes = daemon::Pattern(10'000, 1);
  constexpr int kGets = 150;
  for (int i = 0; i < kGets; ++i) {
    const base::ObjectId id = base::ObjectId::FromName(absl::StrCat("object ", i));
    ASSERT_TRUE(from.Put(id, bytes).ok());
    const auto got = to.Get(id, kPatience);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(daemon::Same(got->data(), bytes));
    ASSERT_TRUE(to.Delete(id).ok());
  }
  const uint64_t pulls = daemon::Number(to, "engine0_adaptive_pulls_total");
  EXPECT_EQ(pulls, static_cast<uint64_t>(kGets));
  EXPECT_LE(daemon::Number(to, "engine0_adaptive_explored_total") * 50, pulls);
  EXPECT_GT(daemon::Number(to, "engine0_adaptive_nanoseconds_total"), 0u);
  EXPECT_EQ(daemon::Number(from, "engine0_adaptive_pulls_total"), 0u);
}

TEST_F(TuneTest, MistakesAreReportedInOneLine) {
  Start();
  const Strings tune = {"--socket", two_->socket(), "tune", "--peer-socket", one_->socket()};
  const auto with = [&](const Strings& more) {
    Strings all = tune;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  ExpectFailure(1, {"--socket", two_->socket(), "tune", "--peer", "nobody"}, {"--peer", "no node nobody", "tok nodes"});
  ExpectFailure(2, with({"--serve"}), {"--serve", "--peer-socket"});
  ExpectFailure(2, with({"--budget", "soon"}), {"--budget"});
  ExpectFailure(2, with({"--budget", "1ms"}), {"--budget: from"});
  ExpectFailure(2, with({"--largest", "much"}), {"--largest"});
  ExpectFailure(2, with({"--largest", "10"}), {"--largest: at least 1KiB"});
  ExpectFailure(1, with({"--largest", "1TiB"}), {"--largest", "an eighth of a node's memory"});
  ExpectFailure(1, {"--socket", two_->socket(), "tune", "--peer-socket", two_->socket()}, {"both ends are"});
  ExpectFailure(1, {"--socket", two_->socket(), "tune", "--peer-socket", Path("nobody")}, {"nobody"});
  ExpectFailure(2, {"--socket", two_->socket(), "tune"}, {"--peer-socket"});
  ExpectFailure(1, with({"--budget", "2s", "--largest", "1KiB", "-o", "/nowhere/policy.json"}),
                {"/nowhere/policy.json"});
}

}  // namespace
}  // namespace tokamak::cli

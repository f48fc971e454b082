// tok bench --between two real daemons: both directions are measured, and nothing is left.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/os/process/child_process.h"
#include "nlohmann/json.hpp"
#include "tests/daemon/tokd_process.h"

namespace tokamak::cli {
namespace {

using daemon::DirectoryOfNode1;
using daemon::kPatience;
using daemon::TokdProcess;
using nlohmann::json;
using Strings = std::vector<std::string>;

class BenchBetweenTest : public testing::Test {
 protected:
  BenchBetweenTest() {
    one_.AwaitReady();
    two_ = std::make_unique<TokdProcess>(folder_, 2, DirectoryOfNode1());
    two_->AwaitReady();
  }

  std::unique_ptr<os::ChildProcess> Start(const TokdProcess& own, Strings arguments) {
    arguments.insert(arguments.begin(), {"--socket", own.socket()});
    return StartWithout(arguments);
  }
  // Without --socket.
  std::unique_ptr<os::ChildProcess> StartWithout(const Strings& arguments) {
    os::ChildOptions options;
    options.argv = {"lib/cli/tok"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.output = folder_.Path("output");
    options.own_group = false;
    std::filesystem::remove(options.output);
    auto started = os::ChildProcess::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  static int CodeOf(os::ChildProcess& process) {
    const auto ended = process.Wait(base::Seconds(60));
    return ended.ok() && ended->signal == 0 ? ended->code : -1;
  }
  std::string Output() const {
    std::ifstream file(folder_.Path("output"));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  json Measured(const TokdProcess& own, Strings arguments) {
    arguments.push_back("--json");
    EXPECT_EQ(CodeOf(*Start(own, arguments)), 0) << Output();
    const json result = json::parse(Output(), nullptr, /*allow_exceptions=*/false);
    EXPECT_EQ(result["directions"].size(), 2u) << result;
    return result["directions"];
  }

  static void ExpectMeasured(const json& direction, const std::string& from, const std::string& to, const char* call,
                             const std::vector<uint64_t>& sizes) {
    EXPECT_EQ(direction["from"], from);
    EXPECT_EQ(direction["to"], to);
    EXPECT_EQ(direction["call"], call);
    ASSERT_EQ(direction["sizes"].size(), sizes.size()) << direction;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const json& size = direction["sizes"][i];
      EXPECT_EQ(size["bytes"], sizes[i]);
      EXPECT_GE(size["objects"], 1);
      EXPECT_GT(size["p50_seconds"], 0);
      EXPECT_LE(size["p50_seconds"], size["p90_seconds"]);
      EXPECT_LE(size["p90_seconds"], size["p99_seconds"]);
      EXPECT_LE(size["p99_seconds"], size["max_seconds"]);
      EXPECT_GT(size["bytes_per_second"], 0);
    }
  }
  // An object that came to be there.
  static bool AwaitObject(Subscription& events, Origin origin) {
    while (true) {
      const auto next = events.Next(kPatience);
      if (!next.ok()) return false;
      for (const Event& event : next->events) {
        if (event.kind == EventKind::kSealed && event.origin == origin) return true;
      }
    }
  }
  void ExpectNothingLeft() {
    for (TokdProcess* node : {&one_, two_.get()}) {
      const auto objects = node->Connect().List();
      ASSERT_TRUE(objects.ok()) << objects.status();
      EXPECT_TRUE(objects->empty()) << objects->size() << " are left on " << node->socket();
    }
  }
  void ExpectFailure(int code, const TokdProcess& own, const Strings& arguments, const Strings& parts) {
    EXPECT_EQ(CodeOf(*Start(own, arguments)), code) << Output();
    const std::string text = Output();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    for (const std::string& part : parts) EXPECT_TRUE(absl::StrContains(text, part)) << text << " lacks " << part;
  }

  daemon::ShortFolder folder_;
  // By which protocol is known: up to 64 KiB eager, above it write.
  TokdProcess one_{folder_, 1, {"--policy", "eager:64KiB,write"}};
  std::unique_ptr<TokdProcess> two_;
};

TEST_F(BenchBetweenTest, TwoSocketsMeasureBothDirections) {
  const std::string one = one_.Connect().node(), two = two_->Connect().node();
  auto tok = StartWithout({"bench", "--between", one_.socket(), two_->socket(), "--sizes", "1KiB,32KiB,256KiB",
                           "--budget", "2s", "--json"});
  ASSERT_EQ(CodeOf(*tok), 0) << Output();
  const json directions = json::parse(Output())["directions"];
  ExpectMeasured(directions[0], one, two, "push", {1024, 32768, 262144});
  ExpectMeasured(directions[1], two, one, "get", {1024, 32768, 262144});
  EXPECT_GT(directions[0]["push_of_nothing_seconds"], 0);
  // One has the directory, and so has the small one come with its own answer; it pulls by its own
  // table.
  EXPECT_EQ(directions[0]["sizes"][0]["by"], json({"brought"})) << directions;
  EXPECT_EQ(directions[0]["sizes"][2]["by"], json({"write"})) << directions;
  EXPECT_EQ(directions[1]["sizes"][1]["by"], json({"eager"})) << directions;
  EXPECT_EQ(directions[1]["sizes"][2]["by"], json({"write"})) << directions;
  ExpectNothingLeft();
}

// As on two machines: each program knows the socket of its own node.
TEST_F(BenchBetweenTest, AServingTokMakesTheOtherNodesObjects) {
  const std::string one = one_.Connect().node(), two = two_->Connect().node();
  os::ChildOptions serving;
  serving.argv = {"lib/cli/tok", "--socket", two_->socket(), "tune", "--serve"};
  serving.output = folder_.Path("served");
  serving.own_group = false;
  const auto server = os::ChildProcess::Start(serving);
  ASSERT_TRUE(server.ok()) << server.status();
  const json directions = Measured(one_, {"bench", "--between", two, "--sizes", "1KiB,128KiB", "--budget", "2s"});
  ExpectMeasured(directions[0], one, two, "push", {1024, 131072});
  ExpectMeasured(directions[1], two, one, "get", {1024, 131072});
  const auto ended = (*server)->Wait(base::Seconds(60));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->code, 0);
  ExpectNothingLeft();
}

TEST_F(BenchBetweenTest, TheOtherDirectionIsReportedMissingWithoutAServer) {
  const std::string one = one_.Connect().node(), two = two_->Connect().node();
  // Named in this order, the other one is still the other one.
  ASSERT_EQ(CodeOf(*Start(one_, {"bench", "--between", two, one, "--sizes", "1KiB", "--count", "3"})), 0) << Output();
  const std::string text = Output();
  for (const std::string& part :
       {absl::StrCat(one, " -> ", two, ": pushed"), std::string("SIZE"), std::string("1 KiB"),
        absl::StrCat(two, " -> ", one, ": not measured: "), std::string("tok tune --serve")}) {
    EXPECT_TRUE(absl::StrContains(text, part)) << text << " lacks " << part;
  }
  ExpectNothingLeft();
}

TEST_F(BenchBetweenTest, AnInterruptedBenchLeavesNothing) {
  // While it pushes, and while it gets what it made on the other node.
  for (const Origin there : {Origin::kPulled, Origin::kCreatedHere}) {
    Client client = two_->Connect();
    auto events = client.Subscribe();
    ASSERT_TRUE(events.ok()) << events.status();
    auto tok = Start(one_, {"bench", "--between", two_->socket(), "--budget", "8s", "--count", "1000000"});
    ASSERT_TRUE(AwaitObject(*events, there));
    ASSERT_TRUE(tok->Signal(SIGINT).ok());
    const auto ended = tok->Wait(base::Seconds(60));
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended->signal, SIGINT) << Output();
    EXPECT_TRUE(absl::EndsWith(Output(), "tok: interrupted\n")) << Output();
    ExpectNothingLeft();
  }
}

TEST_F(BenchBetweenTest, AFailedBenchLeavesNothing) {
  Client client = two_->Connect();
  const std::string name = client.node();
  auto events = client.Subscribe();
  ASSERT_TRUE(events.ok()) << events.status();
  auto tok = Start(one_, {"bench", "--between", two_->socket(), "--budget", "60s"});
  ASSERT_TRUE(AwaitObject(*events, Origin::kPulled));
  two_->Kill();
  EXPECT_EQ(CodeOf(*tok), 1) << Output();
  // The push does not end, or what it pushed cannot be deleted there any more.
  const std::string text = Output();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  EXPECT_TRUE(absl::StrContains(text, name)) << text;
  const auto left = one_.Connect().List();
  ASSERT_TRUE(left.ok()) << left.status();
  EXPECT_TRUE(left->empty()) << left->size() << " are left";
}

TEST_F(BenchBetweenTest, MistakesAreReportedInOneLine) {
  const std::string one = one_.Connect().node(), two = two_->Connect().node();
  ExpectFailure(1, one_, {"bench", "--between", one}, {"--between", "both are node"});
  ExpectFailure(1, one_, {"bench", "--between", "nobody"}, {"--between", "no node nobody", "tok nodes"});
  ExpectFailure(1, one_, {"bench", "--between", two, "nobody"}, {"--between", "neither", "machine of one of them"});
  ExpectFailure(1, one_, {"bench", "--between", folder_.Path("none")}, {folder_.Path("none")});
  ExpectFailure(1, one_, {"bench", "--between", two, "--sizes", "1GiB"}, {"--sizes 1 GiB", "an eighth"});
  ExpectFailure(2, one_, {"bench", "--between", two, "--sizes", "few"}, {"--sizes"});
}

}  // namespace
}  // namespace tokamak::cli

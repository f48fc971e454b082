// Commands of tok against a fake daemon: what they print, and what they leave.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lib/cli/bench/latencies.h"
#include "lib/cli/objects/files.h"
#include "lib/cli/objects/list.h"
#include "lib/client/protocol/frame.h"
#include "lib/os/file_descriptor.h"
#include "lib/os/process/child_process.h"
#include "nlohmann/json.hpp"
#include "tests/client/fake_daemon.h"
#include "tests/support/short_folder.h"
#include "tokamak/client.h"

namespace tokamak::cli {
namespace {

using nlohmann::json;
using Strings = std::vector<std::string>;

constexpr base::Duration kPatience = base::Seconds(60);

class CommandsTest : public testing::Test {
 protected:
  // The output so far of the program started last.
  const std::string& Output() {
    char some[4096];
    for (ssize_t count; (count = read(output_.get(), some, sizeof some)) > 0;) text_.append(some, count);
    return text_;
  }

  void Put(const std::string& name, size_t size) {
    const std::vector<uint8_t> data(size);
    PutOptions options;
    options.name = name;
    ASSERT_TRUE(client_.Put(IdOf(name), data, {}, options).ok());
  }

  std::unique_ptr<os::ChildProcess> Start(const Strings& arguments) {
    os::ChildOptions options;
    options.argv = {"lib/cli/tok", "--socket", daemon_.path()};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.output = folder_ + "/output";
    unlink(options.output.c_str());
    EXPECT_EQ(mkfifo(options.output.c_str(), 0600), 0);
    output_ = os::FileDescriptor(open(options.output.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    text_.clear();
    auto started = os::ChildProcess::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }
  // Its exit code; what it printed is Output().
  int Run(const Strings& arguments) {
    const auto ended = Start(arguments)->Wait(kPatience);
    return ended.ok() ? ended->code : -1;
  }
  json RunJson(Strings arguments) {
    arguments.push_back("--json");
    EXPECT_EQ(Run(arguments), 0) << Output();
    return json::parse(Output(), nullptr, /*allow_exceptions=*/false);
  }
  Strings Lines(const Strings& arguments) {
    EXPECT_EQ(Run(arguments), 0) << Output();
    return absl::StrSplit(Output(), '\n', absl::SkipEmpty());
  }
  // Waits until the program has printed this.
  void AwaitOutput(const std::string& text) {
    pollfd printed = {output_.get(), POLLIN, 0};
    while (!absl::StrContains(Output(), text) && poll(&printed, 1, kPatience.milliseconds()) > 0) {
    }
    EXPECT_TRUE(absl::StrContains(Output(), text)) << Output();
  }

  client::FakeDaemon daemon_;
  Client client_ = *Client::Connect(daemon_.path());
  const testing_support::ShortFolder where_;
  const std::string folder_ = where_.long_path();
  os::FileDescriptor output_;  // a FIFO, which holds all that a command here prints
  std::string text_;
};

// ---- ls

TEST_F(CommandsTest, AListFiltersSortsAndPages) {
  Put("dict/a", 10);
  Put("dict/b", 3000);
  Put("other", 200);
  ASSERT_TRUE(client_.Put(ObjectId::FromName("nameless"), Span<const uint8_t>()).ok());
  EXPECT_EQ(RunJson({"ls"}).size(), 4u);
  EXPECT_EQ(Lines({"ls", "-q", "--prefix", "dict/", "--sort", "name"}), (Strings{"dict/a", "dict/b"}));
  EXPECT_EQ(Lines({"ls", "-q", "--glob", "*t/b"}), (Strings{"dict/b"}));
  EXPECT_EQ(Lines({"ls", "-q", "--min-size", "100B", "--max-size", "1KiB"}), (Strings{"other"}));
  EXPECT_EQ(Lines({"ls", "-q", "--sort", "size", "-r", "--limit", "2"}), (Strings{"dict/b", "other"}));
  EXPECT_EQ(Lines({"ls", "-q", "--sort", "size", "-r", "--limit", "2", "--page", "2"}),
            (Strings{"dict/a", ObjectId::FromName("nameless").ToHex()}));
  EXPECT_EQ(Lines({"ls", "-q", "--limit", "2", "--page", "3"}), Strings());
  EXPECT_EQ(RunJson({"ls", "-q", "--prefix", "o"}), (json{"other"}));
  EXPECT_EQ(RunJson({"ls", "--object-state", "unsealed"}).size(), 0u);
  EXPECT_EQ(RunJson({"ls", "--origin", "pulled"}).size(), 0u);
  EXPECT_EQ(RunJson({"ls", "--origin", "created"}).size(), 4u);
  EXPECT_EQ(Lines({"ls", "-q"}), (Strings{"dict/a", "dict/b", "other", ObjectId::FromName("nameless").ToHex()}));
  EXPECT_EQ(Lines({"ls", "-q", "dict/"}), (Strings{"dict/a", "dict/b"}));
  EXPECT_EQ(Lines({"ls", "nothing"}), Strings{"none of the 4 objects on node fake is asked for"});
  EXPECT_EQ(Run({"ls", "--limit", "0"}), 2);
  EXPECT_EQ(Output(), "tok: --limit: '0' is no number from 1 on (see tok --help)\n");
  const Strings table = Lines({"ls", "--sort", "name", "--limit", "3"});
  ASSERT_EQ(table.size(), 5u);
  EXPECT_EQ(table.back(), "3 of 4; the next with --page 2");
  EXPECT_EQ(Run({"ls", "--page", "2"}), 2);
  EXPECT_EQ(Run({"ls", "--min-size", "much"}), 2);
  EXPECT_TRUE(absl::StrContains(Output(), "--min-size")) << Output();
}

TEST_F(CommandsTest, AFurtherPageHoldsTheRestWhateverTheOrder) {
  ListFlags flags;
  std::vector<ObjectInfo> objects;
  for (int i = 0; i < 20; ++i) {
    ObjectInfo& object = objects.emplace_back();
    object.id = ObjectId::FromName(absl::StrCat(i));
    object.name = absl::StrCat("n", i % 3);
  }
  for (const char* sort : {"id", "name", "size", "age", "pins"}) {
    flags.sort = sort;
    const auto once = Select(objects, flags);
    std::vector<ObjectInfo> backwards(objects.rbegin(), objects.rend());
    const auto again = Select(backwards, flags);
    for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].id, again[i].id) << sort;
  }
}

// ---- wait

TEST_F(CommandsTest, WaitPrintsExistingAndMissingObjects) {
  Put("a", 1);
  Put("b", 1);
  EXPECT_EQ(Lines({"wait", "a", "b"}), (Strings{"a", "b"}));
  EXPECT_EQ(RunJson({"wait", "a", "missing", "--count", "1"}), (json{{"ready", {"a"}}, {"missing", {"missing"}}}));
  EXPECT_EQ(Run({"wait", "a", "missing", "--timeout", "10ms"}), 1);
  for (const char* part : {"a\n", "1 of 2", "missing: missing"}) {
    EXPECT_TRUE(absl::StrContains(Output(), part)) << Output();
  }
  EXPECT_EQ(Run({"wait", "a", "--count", "2"}), 1);
  EXPECT_TRUE(absl::StrContains(Output(), "--count 2")) << Output();
  EXPECT_EQ(Run({"wait"}), 2);
}

// ---- events

TEST_F(CommandsTest, EventsAreOneALineWithNames) {
  const auto tok = Start({"events", "-n", "3", "--json"});
  AwaitOutput("following");
  Put("told", 5);
  Put("kept", 1);
  ASSERT_TRUE(client_.Delete(IdOf("told")).ok());
  const auto ended = tok->Wait(kPatience);
  ASSERT_TRUE(ended.ok() && ended->code == 0) << Output();
  const Strings lines = absl::StrSplit(Output(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u) << Output();
  const json sealed = json::parse(lines[1]), deleted = json::parse(lines[3]);
  EXPECT_EQ(sealed["event"], "sealed");
  EXPECT_EQ(sealed["name"], "told");
  EXPECT_EQ(sealed["data_bytes"], 5);
  EXPECT_EQ(deleted["event"], "deleted");
  EXPECT_EQ(deleted["name"], "told");
  EXPECT_EQ(deleted["id"], IdOf("told").ToHex());
}

TEST_F(CommandsTest, EventsReportNodesThatComeAndGoAndTheDirectory) {
  std::atomic<int> looks{0};
  daemon_.Answer(client::Kind::kNodes, [&](const client::Header& header, const client::FakeDaemon::Bytes&) {
    client::NodesReply reply;
    const int look = ++looks;
    if (look == 2) return std::make_optional(client::EncodeError(header, absl::UnavailableError("it is away")));
    reply.nodes.push_back({"one", "1.1.1.1:1", "soft", 1, 1, true});
    if (look <= 3) reply.nodes.push_back({"two", "2.2.2.2:1", "soft", uint64_t(look <= 1 ? 1 : 2), 1, false});
    return std::make_optional(client::Encode(header.request_id, reply));
  });
  const Strings lines = Lines({"events", "-n", "5"});
  ASSERT_EQ(lines.size(), 6u) << Output();
  const Strings expected = {"following fake",
                            "directory_away it is away",
                            "directory_back",
                            "node_left two at 2.2.2.2:1",
                            "node_joined two at 2.2.2.2:1",
                            "node_left two at 2.2.2.2:1"};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(absl::StrContains(lines[i], " " + expected[i])) << lines[i] << " lacks " << expected[i];
  }
}

TEST_F(CommandsTest, AnEndlessCommandEndsSilentlyByASignal) {
  for (const Strings& command : {Strings{"events"}, Strings{"top", "--interval", "10ms"}}) {
    const auto tok = Start(command);
    AwaitOutput(command[0] == "top" ? "NODE" : "following");
    ASSERT_TRUE(tok->Signal(SIGINT).ok());
    const auto ended = tok->Wait(kPatience);
    ASSERT_TRUE(ended.ok());
    EXPECT_EQ(ended->signal, SIGINT);
    EXPECT_FALSE(absl::StrContains(Output(), "interrupted")) << Output();
  }
}

// ---- bench

TEST_F(CommandsTest, ABenchMeasuresAndLeavesNothing) {
  const json result = RunJson({"bench", "--sizes", "1KiB,100KiB", "--count", "5", "--budget", "30s"});
  ASSERT_EQ(result["sizes"].size(), 2u) << result;
  for (const json& size : result["sizes"]) {
    EXPECT_EQ(size["objects"], 5);
    for (const char* call : {"put", "get"}) {
      EXPECT_GT(size[call]["p50_seconds"], 0);
      EXPECT_LE(size[call]["p50_seconds"], size[call]["p99_seconds"]);
      EXPECT_GT(size[call]["bytes_per_second"], 0);
    }
  }
  EXPECT_EQ(Lines({"bench", "--sizes", "1KiB", "--count", "2"}).size(), 2u);
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
  EXPECT_EQ(Run({"bench", "--sizes", "8TiB"}), 1);  // more than the store, or this machine, has
  EXPECT_TRUE(absl::StrContains(Output(), "--sizes 8 TiB")) << Output();
  EXPECT_EQ(Run({"bench", "--sizes", "few"}), 2);
  EXPECT_TRUE(absl::StrContains(Output(), "--sizes")) << Output();
}

TEST_F(CommandsTest, ABenchThatIsInterruptedLeavesNothing) {
  auto reached = std::make_shared<std::promise<void>>();
  daemon_.Screen(client::Kind::kGet, [reached, count = 0]() mutable {
    if (++count == 3) reached->set_value();
    return count < 3;
  });
  const auto tok = Start({"bench", "--sizes", "1KiB"});
  reached->get_future().wait();
  EXPECT_EQ(daemon_.statistics().sealed_objects, 1u);
  ASSERT_TRUE(tok->Signal(SIGINT).ok());
  ASSERT_TRUE(tok->Wait(kPatience).ok());
  EXPECT_EQ(Output(), "tok: interrupted\n");
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
}

TEST(LatenciesTest, AQuantileIsTheLeastValueThatItsShareDoesNotExceed) {
  Latencies latencies;
  EXPECT_EQ(latencies.Quantile(0.5), 0);
  for (int i = 100; i >= 1; --i) latencies.Add(i);
  EXPECT_EQ(latencies.Quantile(0.5), 50);
  EXPECT_EQ(latencies.Quantile(0.99), 99);
  EXPECT_EQ(latencies.Quantile(1), 100);
  EXPECT_EQ(latencies.Quantile(0), 1);
  EXPECT_EQ(latencies.total(), 5050);
}

// ---- nodes, top

TEST_F(CommandsTest, NodesHaveStates) {
  const Strings lines = Lines({"nodes"});
  ASSERT_EQ(lines.size(), 3u) << Output();
  EXPECT_TRUE(absl::StrContains(lines[0], "STATE")) << lines[0];
  EXPECT_TRUE(absl::StrContains(lines[1], "alive") && absl::StrContains(lines[1], "(this)")) << lines[1];
  EXPECT_TRUE(absl::StrContains(lines[2], "suspected, seen 7 s ago")) << lines[2];
  const json nodes = RunJson({"nodes"});
  EXPECT_EQ(nodes[0]["state"], "alive");
  EXPECT_EQ(nodes[1]["state"], "suspected");
  EXPECT_EQ(nodes[1]["unheard_seconds"], 7);
}

TEST_F(CommandsTest, TopShowsTheNodeAsOftenAsAsked) {
  const Strings lines = Lines({"top", "-n", "2", "--interval", "10ms", "--json"});
  ASSERT_EQ(lines.size(), 2u) << Output();
  for (const std::string& line : lines) EXPECT_EQ(json::parse(line)["nodes"][0]["name"], "fake") << line;
}

}  // namespace
}  // namespace tokamak::cli

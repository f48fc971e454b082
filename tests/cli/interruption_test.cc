// The tok program, interrupted in the middle of its work: what it did so far is taken back.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "lib/cli/objects/files.h"
#include "lib/client/protocol/frame.h"
#include "lib/os/process/child_process.h"
#include "tests/client/fake_daemon.h"
#include "tests/support/short_folder.h"

namespace tokamak::cli {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr base::Duration kInterruptionPatience = base::Seconds(60);
constexpr char kSaid[] = "tok: interrupted\n";

class InterruptionTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Make(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << text;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void PutRaw(const std::string& name, const std::string& data, const std::string& metadata) {
    const auto bytes = [](const std::string& text) { return std::vector<uint8_t>(text.begin(), text.end()); };
    auto client = Client::Connect(daemon_.path());
    ASSERT_TRUE(client.ok() && client->Put(IdOf(name), bytes(data), bytes(metadata)).ok());
  }
  // The content of the folder "out", by name.
  Strings Written() const {
    Strings names;
    for (const auto& entry : fs::recursive_directory_iterator(Path("out"))) {
      names.push_back(entry.path().lexically_relative(Path("out")).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void Start(const Strings& arguments) {
    Strings argv = {"lib/cli/tok", "--socket", daemon_.path()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Run(argv);
  }
  void Run(const Strings& argv) {
    os::ChildOptions options;
    options.argv = argv;
    options.output = Path("output");
    auto started = os::ChildProcess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    tok_ = *std::move(started);
  }

  // Leaves requests of this kind unanswered from the request of this number on; reports that one.
  std::future<void> HangAt(client::Kind kind, size_t number) {
    auto reached = std::make_shared<std::promise<void>>();
    daemon_.Screen(kind, [reached, number, count = size_t{0}]() mutable {
      if (++count == number) reached->set_value();
      return count < number;
    });
    return reached->get_future();
  }

  // The program ends by the signal that it got; what it said.
  std::string Interrupt(int signal) {
    EXPECT_TRUE(tok_->Signal(signal).ok());
    const auto ended = tok_->Wait(kInterruptionPatience);
    EXPECT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended.ok() ? ended->signal : 0, signal);
    return Read(Path("output"));
  }

  // A put of a folder hangs with its third file.
  void StartPut() {
    for (const char* file : {"d/a", "d/b", "d/c", "d/d"}) Make(file, "some bytes");
    const std::future<void> third_file = HangAt(client::Kind::kCreate, 3);
    Start({"put", Path("d"), "--as", "tree"});
    third_file.wait();
    EXPECT_EQ(daemon_.statistics().sealed_objects, 2u);
  }

  client::FakeDaemon daemon_;
  const testing_support::ShortFolder where_;
  const std::string folder_ = where_.long_path();
  std::unique_ptr<os::ChildProcess> tok_;
};

TEST_F(InterruptionTest, ObjectsOfAnInterruptedPutAreRemoved) {
  StartPut();
  EXPECT_EQ(Interrupt(SIGTERM), kSaid);
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
}

TEST_F(InterruptionTest, ObjectsThatCannotBeRemovedAreNamedWithTheRemedy) {
  StartPut();
  daemon_.Answer(client::Kind::kDelete, [](const client::Header& header, const std::vector<uint8_t>&) {
    return client::EncodeError(header, absl::UnavailableError("the directory is away"));
  });
  const std::string said = Interrupt(SIGTERM);
  for (const char* part : {"interrupted", "half done", "tree/b", "the directory is away", "rm --prefix"}) {
    EXPECT_NE(said.find(part), std::string::npos) << said << " lacks " << part;
  }
}

TEST_F(InterruptionTest, ASecondSignalEndsItAtOnce) {
  StartPut();
  const std::future<void> removing = HangAt(client::Kind::kDelete, 1);
  ASSERT_TRUE(tok_->Signal(SIGINT).ok());
  removing.wait();
  EXPECT_EQ(Interrupt(SIGTERM), "");
}

// As timeout(1) does, which signals its child, and then the group that this is in.
TEST_F(InterruptionTest, ASignalThatOneProcessSendsTwiceIsOneRequest) {
  StartPut();
  const pid_t pid = tok_->pid();
  daemon_.Screen(client::Kind::kDelete, [pid] {
    kill(pid, SIGTERM);  // while it tidies up
    return true;
  });
  EXPECT_EQ(Interrupt(SIGTERM), kSaid);
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
}

TEST_F(InterruptionTest, FilesOfAnInterruptedGetAreRemovedAndOlderOnesStay) {
  PutRaw("tree", R"({"files": ["a", "sub/b", "third"], "folders": ["empty"]})",
         R"({"name": "tree", "kind": "directory"})");
  PutRaw("tree/a", "young", "");
  PutRaw("tree/sub/b", "young", "");
  Make("out/a", "old");
  const std::future<void> third_file = HangAt(client::Kind::kGet, 4);  // the first is for the listing
  Start({"get", "tree", "-o", Path("out")});
  third_file.wait();
  EXPECT_EQ(Written().size(), 5u);  // two parts, two folders and the old file
  EXPECT_EQ(Interrupt(SIGINT), kSaid);
  EXPECT_EQ(Written(), Strings{"a"});
  EXPECT_EQ(Read(Path("out/a")), "old");
}

TEST_F(InterruptionTest, AProgramThatOnlyWaitsEndsAtOnce) {
  Start({"get", "missing", "-o", Path("x")});
  ASSERT_TRUE(daemon_.AwaitGets(1));
  EXPECT_EQ(Interrupt(SIGHUP), kSaid);
  EXPECT_FALSE(fs::exists(Path("x")));
}

TEST_F(InterruptionTest, ASignalThatWasIgnoredBeforeStaysIgnored) {
  Run({"/bin/sh", "-c", "trap '' HUP; exec lib/cli/tok --socket " + daemon_.path() + " get missing -o " + Path("x")});
  ASSERT_TRUE(daemon_.AwaitGets(1));
  ASSERT_TRUE(tok_->Signal(SIGHUP).ok());  // would be taken first
  EXPECT_EQ(Interrupt(SIGTERM), kSaid);
}

}  // namespace
}  // namespace tokamak::cli

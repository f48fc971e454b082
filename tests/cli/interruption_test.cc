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

#include "lib/cli/files.h"
#include "lib/os/child_process.h"
#include "tests/client/fake_daemon.h"
#include "tests/support/short_folder.h"

namespace tokamak::cli {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

constexpr base::Duration kPatience = base::Seconds(60);

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
    auto client = client::Client::Connect(daemon_.path());
    ASSERT_TRUE(client.ok() && client->Put(IdOf(name), bytes(data), bytes(metadata)).ok());
  }
  // What is in the folder "out", by name.
  Strings Written() const {
    Strings names;
    for (const auto& entry : fs::recursive_directory_iterator(Path("out"))) {
      names.push_back(entry.path().lexically_relative(Path("out")).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void Start(Strings arguments) {
    os::ChildOptions options;
    options.argv = {"lib/cli/tok", "--socket", daemon_.path()};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.output = Path("output");
    auto started = os::ChildProcess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    tok_ = *std::move(started);
  }

  // From the request of this number on, those of this kind are not answered any more; that one is
  // told.
  std::future<void> HangAt(client::Kind kind, size_t number) {
    auto reached = std::make_shared<std::promise<void>>();
    daemon_.Screen(kind, [reached, number, count = size_t{0}]() mutable {
      if (++count == number) reached->set_value();
      return count < number;
    });
    return reached->get_future();
  }

  // The program ends by the signal that it got, and says that it was interrupted.
  void Interrupt(int signal) {
    ASSERT_TRUE(tok_->Signal(signal).ok());
    const auto ended = tok_->Wait(kPatience);
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended->signal, signal);
    EXPECT_EQ(Read(Path("output")), "tok: interrupted\n");
  }

  client::FakeDaemon daemon_;
  const testing_support::ShortFolder where_;
  const std::string folder_ = where_.long_path();
  std::unique_ptr<os::ChildProcess> tok_;
};

TEST_F(InterruptionTest, WhatAPutHasPutIsRemoved) {
  for (const char* file : {"d/a", "d/b", "d/c", "d/d"}) Make(file, "some bytes");
  const std::future<void> third_file = HangAt(client::Kind::kCreate, 3);
  Start({"put", Path("d"), "--as", "tree"});
  third_file.wait();
  EXPECT_EQ(daemon_.statistics().sealed_objects, 2u);
  Interrupt(SIGTERM);
  EXPECT_EQ(daemon_.statistics().sealed_objects, 0u);
}

TEST_F(InterruptionTest, WhatAGetHasWrittenIsRemovedAndWhatWasThereStays) {
  PutRaw("tree", R"({"files": ["a", "sub/b", "third"], "folders": ["empty"]})",
         R"({"name": "tree", "kind": "directory"})");
  PutRaw("tree/a", "young", "");
  PutRaw("tree/sub/b", "young", "");
  Make("out/a", "old");
  const std::future<void> third_file = HangAt(client::Kind::kGet, 4);  // the first is for the listing
  Start({"get", "tree", "-o", Path("out")});
  third_file.wait();
  EXPECT_EQ(Written().size(), 5u);  // two parts, two folders and the old file
  Interrupt(SIGINT);
  EXPECT_EQ(Written(), Strings{"a"});
  EXPECT_EQ(Read(Path("out/a")), "old");
}

TEST_F(InterruptionTest, AProgramThatOnlyWaitsEndsAtOnce) {
  Start({"get", "missing", "-o", Path("x")});
  ASSERT_TRUE(daemon_.AwaitGets(1));
  Interrupt(SIGHUP);
  EXPECT_FALSE(fs::exists(Path("x")));
}

}  // namespace
}  // namespace tokamak::cli

// The fixture of tests of the applications: their programs between real daemons, with everything
// killed that can be.
//
// A process is killed, or stopped so that something else can be killed, at a moment that it names
// itself (examples/moments.h): no time is guessed.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/daemon/tokd_process.h"

namespace tokamak::example {

using daemon::Eventually;
using daemon::kPatience;
using daemon::TokdProcess;
using Strings = std::vector<std::string>;

// A program of ours: what it says goes to a file.
class App final {
 public:
  App(std::string output, const Strings& argv) : output_(std::move(output)) {
    os::ChildOptions options;
    options.argv = argv;
    options.output = output_;
    options.die_with_parent = true;
    auto started = os::ChildProcess::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) process_ = *std::move(started);
  }

  std::string text() const {
    std::ifstream file(output_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Without the moments.
  Strings lines() const {
    Strings lines = absl::StrSplit(text(), '\n', absl::SkipEmpty());
    lines.erase(std::remove_if(lines.begin(), lines.end(), [](const auto& l) { return absl::StartsWith(l, "at "); }),
                lines.end());
    return lines;
  }

  void AwaitMoment(const std::string& moment) {
    EXPECT_TRUE(Eventually([&] { return absl::StrContains(text(), absl::StrCat("at ", moment, "\n")); }))
        << moment << " was not reached: " << text();
  }
  void Continue() { EXPECT_TRUE(process_->Signal(SIGCONT).ok()); }

  void ExpectCode(int code) {
    const auto ended = process_->Wait(base::Seconds(60));
    ASSERT_TRUE(ended.ok()) << "still running: " << text();
    EXPECT_TRUE(ended->signal == 0 && ended->code == code) << ended->ToString() << ": " << text();
  }
  void ExpectKilled() {
    const auto ended = process_->Wait(base::Seconds(60));
    ASSERT_TRUE(ended.ok()) << "still running: " << text();
    EXPECT_EQ(ended->signal, SIGKILL) << text();
  }
  // One line that has all parts.
  void ExpectFailure(int code, const Strings& parts) {
    ExpectCode(code);
    ASSERT_EQ(lines().size(), 1u) << text();
    for (const std::string& part : parts) EXPECT_TRUE(absl::StrContains(lines()[0], part)) << text();
  }

 private:
  const std::string output_;
  std::unique_ptr<os::ChildProcess> process_;
};

class ApplicationsTest : public testing::Test {
 protected:
  void TearDown() override {
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      if (*node == nullptr) continue;
      const daemon::Ended ended = (*node)->Terminate();
      EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << "\n" << ended.text;
      if (HasFailure()) std::cout << ended.text;
    }
  }

  // The first has the directory.
  void StartNodes(int count) {
    for (int index = 1; index <= count; ++index) Start(index);
  }
  void Start(int index) {
    Strings flags = {"--memory", "32MiB", "--lease", "1s", "--grace", "4s", "--drain", "1s"};
    if (index != 1) {
      for (const std::string& flag : daemon::DirectoryOfNode1()) flags.push_back(flag);
    }
    nodes_[index] = std::make_unique<TokdProcess>(folder_, index, flags);
    nodes_[index]->AwaitReady();
  }

  std::unique_ptr<App> Run(Strings argv) {
    return std::make_unique<App>(folder_.Path(absl::StrCat("output", ++apps_)), std::move(argv));
  }

  void ExpectStoresAreEmpty() {
    for (const auto& node : nodes_) {
      if (node == nullptr) continue;
      Client client = node->Connect();
      size_t left = 0;
      EXPECT_TRUE(Eventually([&] {
        const auto objects = client.List();
        left = objects.ok() ? objects->size() : SIZE_MAX;
        return left == 0;
      })) << left
          << " objects are left at " << node->socket();
    }
  }

  const daemon::ShortFolder folder_;
  std::vector<std::unique_ptr<TokdProcess>> nodes_ = std::vector<std::unique_ptr<TokdProcess>>(4);  // from 1
  int apps_ = 0;
};

}  // namespace tokamak::example

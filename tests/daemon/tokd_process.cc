#include "tests/daemon/tokd_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "tests/support/test_devices.h"

namespace tokamak::daemon {

namespace fs = std::filesystem;

size_t Ended::lines() const { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

TokdProcess::TokdProcess(const ShortFolder& folder, int index, const std::vector<std::string>& more)
    : socket_(folder.Path(absl::StrCat("node", index, ".sock"))),
      log_(folder.Path(absl::StrCat("node", index, ".log"))) {
  const cli::NodePlace place = testing_support::PlaceOfNode(index);
  std::vector<std::pair<std::string, std::string>> flags = {{"--name", absl::StrCat("node", index)},
                                                            {"--listen", place.listen.ToString()},
                                                            {"--device", place.device},
                                                            {"--memory", "32MiB"},
                                                            {"--socket", socket_}};
  os::ChildOptions options;
  options.argv = {"lib/daemon/tokd"};
  for (const auto& [name, value] : flags) {
    // A test's own flag takes its place.
    if (std::find(more.begin(), more.end(), name) != more.end()) continue;
    options.argv.push_back(name);
    options.argv.push_back(value);
  }
  options.argv.insert(options.argv.end(), more.begin(), more.end());
  const bool has_secret = std::find(more.begin(), more.end(), "--secret-file") != more.end();
  if (!place.listen.is_loopback() && !has_secret) options.argv.push_back("--insecure");  // a guest's own network
  options.output = log_;
  options.die_with_parent = true;
  fs::remove(log_);
  auto process = os::ChildProcess::Start(options);
  CHECK(process.ok()) << process.status();
  process_ = *std::move(process);
}

std::string TokdProcess::log() const {
  std::ifstream file(log_);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

uint64_t TokdProcess::own_memory() const {
  std::ifstream file(absl::StrCat("/proc/", pid(), "/status"));
  for (std::string word; file >> word;) {
    uint64_t kib = 0;
    if (word == "RssAnon:" && file >> kib) return kib;
  }
  return 0;
}

int TokdProcess::descriptors() const {
  const fs::directory_iterator all(absl::StrCat("/proc/", pid(), "/fd"));
  return static_cast<int>(std::distance(fs::begin(all), fs::end(all)));
}

void TokdProcess::AwaitReady() {
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(log(), " ready: ") || !running(); }));
  ASSERT_TRUE(running()) << log();
}

Ended TokdProcess::AwaitEnd() {
  const auto status = process_->Wait(base::Seconds(60));
  EXPECT_TRUE(status.ok()) << "still running: " << log();
  return {status.ok() ? *status : os::ExitStatus(), log()};
}

void TokdProcess::Signal(int signal) {
  const absl::Status status = process_->Signal(signal);
  EXPECT_TRUE(status.ok()) << status;
}

Ended TokdProcess::Terminate() {
  Signal(SIGTERM);
  return AwaitEnd();
}

void TokdProcess::Kill() {
  Signal(SIGKILL);
  EXPECT_EQ(AwaitEnd().status.signal, SIGKILL);
}

Client TokdProcess::Connect(Access access) const {
  ClientOptions options;
  options.access = access;
  options.call_timeout = kPatience;
  auto client = Client::Connect(socket_, options);
  CHECK(client.ok()) << client.status() << "\n" << log();
  return *std::move(client);
}

std::vector<std::string> DirectoryOfNode1() {
  return {"--directory", "tokd@" + testing_support::PlaceOfNode(1).listen.ToString()};
}

bool Eventually(const std::function<bool()>& check) {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!check()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    poll(nullptr, 0, 5);  // another process's doing, of which nothing else tells
  }
  return true;
}

uint64_t Number(Client& client, const std::string& name) {
  const auto stats = client.NodeStats();
  EXPECT_TRUE(stats.ok()) << stats.status();
  if (!stats.ok()) return 0;
  for (const NodeNumber& number : stats->numbers) {
    if (number.name == name) return number.value;
  }
  ADD_FAILURE() << "no number " << name;
  return 0;
}

std::vector<uint8_t> Pattern(size_t size, uint8_t seed) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = seed + 1u;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

bool Same(Span<const uint8_t> a, Span<const uint8_t> b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace tokamak::daemon

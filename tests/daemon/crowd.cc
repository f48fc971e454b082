#include "tests/daemon/crowd.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::daemon {
namespace {

constexpr size_t kSize = 64;        // bytes of an object
constexpr int kProgramsAtOnce = 8;  // threads, each with the programs of some nodes
constexpr int kStartedAtOnce = 20;

ObjectId ObjectOf(size_t node) { return ObjectId::FromName(absl::StrCat("of node ", node)); }
std::vector<uint8_t> BytesOf(size_t node) { return Pattern(kSize, static_cast<uint8_t>(node)); }

uint64_t RefusalsIn(const std::string& log) {
  uint64_t count = 0;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) count += absl::StrContains(line, "refused a connection");
  return count;
}

}  // namespace

Crowd::Crowd(int nodes) : nodes_(static_cast<size_t>(nodes)) {
  for (int i = 0; i < nodes; ++i) {
    std::vector<std::string> flags = {"--memory", "1MiB", "--drain", "0s", "--engines", "0"};
    if (i > 0) {
      for (const std::string& flag : DirectoryOfNode1()) flags.push_back(flag);
    }
    nodes_[static_cast<size_t>(i)].process = std::make_unique<TokdProcess>(folder_, i + 1, flags);
    // The first serves the directory; the others start side by side, some at a time.
    if (i == 0) nodes_[0].process->AwaitReady();
    if (i >= kStartedAtOnce) nodes_[static_cast<size_t>(i - kStartedAtOnce)].process->AwaitReady();
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    node.process->AwaitReady();
    node.client = std::make_unique<Client>(node.process->Connect());
    const Status put = node.client->Put(ObjectOf(i), BytesOf(i));
    CHECK(put.ok()) << put;
    node.descriptors = node.process->descriptors();
    node.memory = node.process->own_memory();
  }
}

CrowdReport Crowd::GetAll(Timeout timeout) {
  CrowdReport report;
  std::mutex mutex;
  std::vector<ObjectId> ids;
  for (size_t i = 0; i < nodes_.size(); ++i) ids.push_back(ObjectOf(i));
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::thread> programs;
  for (size_t first = 0; first < kProgramsAtOnce; ++first) {
    programs.emplace_back([&, first] {
      for (size_t n = first; n < nodes_.size(); n += kProgramsAtOnce) {
        const auto got = nodes_[n].client->Get(ids, timeout);
        const std::lock_guard<std::mutex> lock(mutex);
        for (size_t i = 0; i < got.size(); ++i) {
          const bool right = got[i].ok() && Same(got[i]->data(), BytesOf(i));
          ++(right ? report.gets : report.failed_gets);
          if (!right && report.first_failure.empty()) {
            report.first_failure = got[i].ok() ? "other bytes" : got[i].status().ToString();
          }
        }
      }
    });
  }
  for (std::thread& program : programs) program.join();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  for (Node& node : nodes_) {
    report.failed_attempts += Number(*node.client, "pull_attempts_failed_total");
    report.connections += Number(*node.client, "engine0_connections_opened_total");
    report.connections_lost += Number(*node.client, "engine0_connections_lost_total");
    report.protocol_errors += Number(*node.client, "engine0_protocol_errors_total");
    report.refusals += RefusalsIn(node.process->log());
    report.most_descriptors_more =
        std::max(report.most_descriptors_more, node.process->descriptors() - node.descriptors);
    const uint64_t memory = node.process->own_memory();
    if (memory > node.memory) report.most_memory_more = std::max(report.most_memory_more, memory - node.memory);
  }
  return report;
}

}  // namespace tokamak::daemon

#include "tests/daemon/truth/three_daemons.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tokamak::daemon {

std::string NameOfDirectory(const testing::TestParamInfo<DirectoryKind>& info) {
  switch (info.param) {
    case DirectoryKind::kTokd:
      return "tokd";
    case DirectoryKind::kRedis:
      return "redis";
    case DirectoryKind::kSentinel:
      return "sentinel";
    case DirectoryKind::kCluster:
      break;
  }
  return "cluster";
}

static constexpr int kMostLooks = 4;

void LetLive(base::Duration duration) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::microseconds(duration.microseconds());
  while (Clock::now() < end) poll(nullptr, 0, 10);
}

void ThreeDaemons::SetUp() {
  if (GetParam() == DirectoryKind::kRedis) redis_ = std::make_unique<directory::redis::RedisServer>();
  if (GetParam() == DirectoryKind::kSentinel) group_ = std::make_unique<directory::redis::RedisGroup>();
  if (GetParam() == DirectoryKind::kCluster) cluster_ = std::make_unique<directory::redis::RedisCluster>();
  for (size_t index = 1; index < nodes_.size(); ++index) Start(static_cast<int>(index));
}

void ThreeDaemons::TearDown() {
  for (size_t index = nodes_.size() - 1; index >= 1; --index) {
    if (nodes_[index] == nullptr) continue;
    nodes_[index]->Signal(SIGCONT);
    const Ended ended = nodes_[index]->Terminate();
    EXPECT_EQ(ended.status.code, 0) << ended.status.ToString() << "\n" << ended.text;
    if (HasFailure()) std::cout << "---- node " << index << "\n" << ended.text;
  }
}

std::vector<std::string> ThreeDaemons::Flags(int index) const {
  std::vector<std::string> flags = {"--lease", "1s", "--grace", "4s", "--memory", "64MiB", "--drain", drain_};
  if (redis_ != nullptr) {
    flags.insert(flags.end(), {"--directory", "redis@" + redis_->address()});
  } else if (group_ != nullptr) {
    flags.insert(flags.end(), {"--directory", group_->directory()});
  } else if (cluster_ != nullptr) {
    flags.insert(flags.end(), {"--directory", cluster_->directory()});
  } else if (index != 1) {
    for (const std::string& flag : DirectoryOfNode1()) flags.push_back(flag);
  }
  flags.insert(flags.end(), more_flags_.begin(), more_flags_.end());
  return flags;
}

void ThreeDaemons::Start(int index) {
  nodes_[index] = std::make_unique<TokdProcess>(folder_, index, Flags(index));
  nodes_[index]->AwaitReady();
}

PutOptions ThreeDaemons::Confirmed() {
  PutOptions options;
  options.confirmed = true;
  return options;
}

bool ThreeDaemons::Knows(Client& client, const std::string& name) {
  const auto nodes = client.Nodes();
  if (!nodes.ok()) return false;
  for (const NodeInfo& node : *nodes) {
    if (node.name == name) return true;
  }
  return false;
}

void ThreeDaemons::AwaitHealed() {
  for (size_t index = 1; index < nodes_.size(); ++index) {
    Client client = Connect(static_cast<int>(index));
    EXPECT_TRUE(Eventually([&] {
      const auto nodes = client.Nodes();
      return nodes.ok() && nodes->size() == nodes_.size() - 1 && Number(client, "directory_away") == 0 &&
             Number(client, "fenced") == 0 && AllIsAnnounced(client);
    })) << "node "
        << index;
  }
}

bool ThreeDaemons::AllIsAnnounced(Client& client) { return Number(client, "directory_updates_behind") == 0; }

bool ThreeDaemons::ReadAll(Witness& witness, const std::vector<std::string>& ids, Timeout timeout, bool last) {
  std::vector<std::thread> readers;
  std::vector<std::vector<uint64_t>> contents(nodes_.size());
  for (size_t node = 1; node < nodes_.size(); ++node) {
    readers.emplace_back([&, node] {
      Client client = Connect(static_cast<int>(node));
      contents[node] = witness.GetAll(client, static_cast<uint32_t>(node), ids, timeout, last);
    });
  }
  for (std::thread& reader : readers) reader.join();
  return std::all_of(contents.begin() + 1, contents.end(), [&](const auto& read) { return read == contents[1]; });
}

// A holder that is silent is left after transport::kPatience, 10 s: only then is the next asked.
// A look may carry on a deletion that was not finished and that the directory has forgotten
// (docs/consistency.md): until then some read what others do not. The last is judged, whatever it
// reads.
void ThreeDaemons::ReadAllAndJudge(Witness& witness, const std::vector<std::string>& ids) {
  for (int look = 0; look < kMostLooks; ++look) {
    if (ReadAll(witness, ids, std::chrono::seconds(12), false)) break;
  }
  ReadAll(witness, ids, std::chrono::seconds(30), true);
  const std::vector<std::string> wrong = witness.Violations();
  for (const std::string& one : wrong) ADD_FAILURE() << one;
  for (const std::string& id : ids) {
    if (wrong.empty() || !absl::StrContains(wrong.front(), absl::StrCat("(", id, ")"))) continue;
    std::cout << "all that was asked about " << id << ":\n" << witness.Describe(id);
  }
}

std::vector<uint8_t> ThreeDaemons::Read(Client& client, const std::string& name, Timeout timeout) {
  const auto buffer = client.Get(Id(name), timeout);
  EXPECT_TRUE(buffer.ok()) << name << ": " << buffer.status();
  if (!buffer.ok()) return {};
  return {buffer->data().begin(), buffer->data().end()};
}

}  // namespace tokamak::daemon

// ThreeDaemons is the fixture of tests that have real tokd processes and each directory: three
// nodes, or more, with short leases.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "lib/base/object_id.h"
#include "lib/base/time.h"
#include "tests/daemon/tokd_process.h"
#include "tests/daemon/truth/witness.h"
#include "tests/directory/redis_group.h"
#include "tests/directory/redis_server.h"
#include "tokamak/client.h"

namespace tokamak::daemon {

enum class DirectoryKind { kTokd, kRedis, kSentinel, kCluster };

inline const auto kBothDirectories = testing::Values(DirectoryKind::kTokd, DirectoryKind::kRedis);
std::string NameOfDirectory(const testing::TestParamInfo<DirectoryKind>& info);

// The settings of the daemons.
constexpr base::Duration kLease = base::Seconds(1);
constexpr base::Duration kGrace = base::Seconds(4);

inline ObjectId Id(const std::string& name) { return ObjectId::FromName(name); }

// Waits while the other processes live: leases end by their clock, which no test can move.
void LetLive(base::Duration duration);

constexpr int kNodes = 3;

// The first node serves the directory, unless Redis does: one server, or several (RedisGroup,
// RedisCluster).
class ThreeDaemons : public testing::TestWithParam<DirectoryKind> {
 protected:
  void SetUp() override;
  // Every daemon that runs still has to end well when it is asked to.
  void TearDown() override;

  // The flags of node `index`, which may be beyond the three.
  std::vector<std::string> Flags(int index) const;
  void Start(int index);
  Client Connect(int index) { return nodes_[index]->Connect(); }

  // It stands still, and keeps its connections.
  void StopDirectory() { redis_ != nullptr ? redis_->Freeze() : nodes_[1]->Signal(SIGSTOP); }
  void ContinueDirectory() { redis_ != nullptr ? redis_->Thaw() : nodes_[1]->Signal(SIGCONT); }

  static PutOptions Confirmed();
  static bool Knows(Client& client, const std::string& name);

  // All nodes are in the directory, which has heard everything.
  void AwaitHealed();
  // The directory has heard everything of the node that `client` talks to.
  static bool AllIsAnnounced(Client& client);

  // Every node reads all of `ids`, and what was answered is as promised.
  void ReadAllAndJudge(Witness& witness, const std::vector<std::string>& ids);
  // Returns whether all nodes read the same.
  bool ReadAll(Witness& witness, const std::vector<std::string>& ids, Timeout timeout, bool last);

  // The bytes that `client` reads; empty, and a failure of the test, if it reads none.
  static std::vector<uint8_t> Read(Client& client, const std::string& name, Timeout timeout = kPatience);

  const ShortFolder folder_;
  std::unique_ptr<directory::redis::RedisServer> redis_;
  std::unique_ptr<directory::redis::RedisGroup> group_;
  std::unique_ptr<directory::redis::RedisCluster> cluster_;
  // The drain time of each node.
  std::string drain_ = "1s";
  std::vector<std::string> more_flags_;
  // From 1 on. A test that needs more than three enlarges it before SetUp.
  std::vector<std::unique_ptr<TokdProcess>> nodes_ = std::vector<std::unique_ptr<TokdProcess>>(kNodes + 1);
};

}  // namespace tokamak::daemon

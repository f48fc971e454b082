// Past faults with more holders than the directory names in one answer: 70 small real tokd. Rows as
// in regression_test.cc.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/directory/directory.h"
#include "tests/daemon/truth/three_daemons.h"

namespace tokamak::daemon {
namespace {

constexpr int kManyNodes = 70;
static_assert(kManyNodes > directory::kMaxHoldersNamed + 3);

class ManyDaemonsTest : public ThreeDaemons {
 protected:
  void SetUp() override {
    if (GetParam() == DirectoryKind::kRedis) redis_ = std::make_unique<directory::redis::RedisServer>();
    nodes_.resize(kManyNodes + 1);
    for (int index = 1; index <= kManyNodes; ++index) {
      std::vector<std::string> flags = {"--memory", "4MiB", "--drain", "1s", "--engines", "0"};
      if (redis_ != nullptr) {
        flags.insert(flags.end(), {"--directory", "redis@" + redis_->address()});
      } else if (index != 1) {
        for (const std::string& flag : DirectoryOfNode1()) flags.push_back(flag);
      }
      nodes_[index] = std::make_unique<TokdProcess>(folder_, index, flags);
      // The first serves the directory; the others start side by side.
      if (index == 1) nodes_[index]->AwaitReady();
    }
    for (int index = 2; index <= kManyNodes; ++index) nodes_[index]->AwaitReady();
    for (int index = 1; index <= kManyNodes; ++index) clients_.push_back(Connect(index));
  }
  void TearDown() override {
    clients_.clear();
    ThreeDaemons::TearDown();
  }

  Client& Of(int index) { return clients_[static_cast<size_t>(index - 1)]; }

  // The first `nodes` have a copy, and the directory knows.
  void SpreadTo(int nodes, const std::string& name, const std::vector<uint8_t>& bytes) {
    ASSERT_TRUE(Of(1).Put(Id(name), bytes, {}, Confirmed()).ok());
    for (int index = 2; index <= nodes; ++index) ASSERT_TRUE(Same(Read(Of(index), name), bytes)) << index;
    for (int index = 1; index <= nodes; ++index) {
      ASSERT_TRUE(Eventually([&] { return AllIsAnnounced(Of(index)); })) << index;
    }
  }

  std::vector<Client> clients_;
};

INSTANTIATE_TEST_SUITE_P(Directory, ManyDaemonsTest, kBothDirectories, NameOfDirectory);

// Row 1.
TEST_P(ManyDaemonsTest, ADeleteReachesAllHolders) {
  const std::vector<uint8_t> old_bytes = Pattern(1000, 1), new_bytes = Pattern(1000, 2);
  SpreadTo(kManyNodes - 1, "x", old_bytes);
  const Status deleted = Of(kManyNodes).Delete(Id("x"));
  ASSERT_TRUE(deleted.ok()) << deleted;
  const Status put = Of(kManyNodes).Put(Id("x"), new_bytes, {}, Confirmed());
  ASSERT_TRUE(put.ok()) << put;
  for (int index = 1; index <= kManyNodes; ++index) EXPECT_TRUE(Same(Read(Of(index), "x"), new_bytes)) << index;
}

// Row 4.
TEST_P(ManyDaemonsTest, AnyHolderIsFoundWhenTheOthersHaveEvicted) {
  const std::vector<uint8_t> bytes = Pattern(1000, 1);
  SpreadTo(kManyNodes - 1, "x", bytes);
  const auto stat = Of(kManyNodes).Stat(Id("x"));
  ASSERT_TRUE(stat.ok()) << stat.status();
  ASSERT_EQ(stat->holders.size(), directory::kMaxHoldersNamed);
  // Each named holder evicts its copy; the first node's is the original, and stays.
  for (const std::string& name : stat->holders) {
    for (int index = 2; index < kManyNodes; ++index) {
      if (name == absl::StrCat("node", index)) {
        ASSERT_TRUE(Of(index).Evict(1).ok());
      }
    }
  }
  EXPECT_TRUE(Same(Read(Of(kManyNodes), "x"), bytes));
}

}  // namespace
}  // namespace tokamak::daemon

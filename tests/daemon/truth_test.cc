// Real tokd processes keep what docs/consistency.md promises, with each directory: programs that
// put, get and delete the same ids while nodes stand still, are killed, and the directory is away,
// are judged by sim::History.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/random.h"
#include "tests/daemon/three_daemons.h"
#include "tests/daemon/witness.h"

namespace tokamak::daemon {
namespace {

using Clock = std::chrono::steady_clock;
using TruthTest = ThreeDaemons;

INSTANTIATE_TEST_SUITE_P(Directory, TruthTest, kBothDirectories, NameOfDirectory);

// Programs of all nodes, until it is dropped.
class Programs final {
 public:
  static constexpr int kForEachNode = 2;
  static constexpr uint64_t kIdsAtOnce = 4;
  // Then others take their place: each trouble meets some, and the history of one id stays short
  // enough to be judged.
  static constexpr base::Duration kSeries = base::Seconds(4);

  Programs(Witness& witness, const std::vector<std::unique_ptr<TokdProcess>>& nodes) : witness_(witness) {
    for (int node = 1; node <= kNodes; ++node) {
      for (int i = 0; i < kForEachNode; ++i) {
        const uint64_t seed = static_cast<uint64_t>(node * kForEachNode + i);
        threads_.emplace_back([this, node, seed, socket = nodes[node]->socket()] {
          Run(static_cast<uint32_t>(node), socket, base::Random(seed));
        });
      }
    }
  }
  ~Programs() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  static std::string IdOf(uint64_t series, uint64_t place) { return absl::StrCat("s", series, "-", place); }
  std::vector<std::string> AllIds() const {
    std::vector<std::string> ids;
    for (uint64_t series = 0; series <= Series(); ++series) {
      for (uint64_t place = 0; place < kIdsAtOnce; ++place) ids.push_back(IdOf(series, place));
    }
    return ids;
  }

 private:
  uint64_t Series() const {
    return static_cast<uint64_t>((Clock::now() - began_) / std::chrono::microseconds(kSeries.microseconds()));
  }

  void Run(uint32_t node, const std::string& socket, base::Random random) {
    client::ClientOptions options;
    options.call_timeout = kPatience;
    while (!stop_) {
      auto client = client::Client::Connect(socket, options);
      if (!client.ok()) poll(nullptr, 0, 5);  // the daemon is being restarted
      while (client.ok() && client->status().ok() && !stop_) Act(node, *client, random);
    }
  }

  void Act(uint32_t node, client::Client& client, base::Random& random) {
    const std::string id = IdOf(Series(), random.Below(kIdsAtOnce));
    switch (random.Below(10)) {
      case 0:
        return (void)witness_.Put(client, node, id, /*confirmed=*/false);
      case 1:
      case 2:
        return (void)witness_.Put(client, node, id, /*confirmed=*/true);
      case 3:
        return (void)witness_.Delete(client, node, id);
      default:
        return (void)witness_.Get(client, node, id, base::Milliseconds(static_cast<int64_t>(random.Below(200))));
    }
  }

  Witness& witness_;
  const Clock::time_point began_ = Clock::now();
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_P(TruthTest, ProgramsUnderTroubleReadWhatWasPromised) {
  Witness witness;
  std::vector<std::string> ids;
  {
    Programs programs(witness, nodes_);
    LetLive(base::Seconds(2));

    nodes_[3]->Signal(SIGSTOP);
    LetLive(kLease * 2);
    nodes_[3]->Signal(SIGCONT);
    LetLive(base::Seconds(1));

    nodes_[2]->Kill();
    witness.Lost(2);
    LetLive(base::Milliseconds(500));
    Start(2);
    LetLive(base::Seconds(2));

    StopDirectory();
    LetLive(base::Seconds(3));
    ContinueDirectory();
    LetLive(base::Seconds(2));

    nodes_[3]->Signal(SIGSTOP);  // beyond its grace
    LetLive(kLease + kGrace + base::Seconds(1));
    nodes_[3]->Signal(SIGCONT);
    LetLive(base::Seconds(1));
    ids = programs.AllIds();
  }
  AwaitHealed();
  std::vector<std::thread> readers;
  for (int node = 1; node <= kNodes; ++node) {
    readers.emplace_back([&, node] {
      client::Client client = Connect(node);
      // A holder that is silent is left after transport::kPatience, 10 s: only then is the next
      // asked.
      witness.GetLast(client, static_cast<uint32_t>(node), ids, base::Seconds(30));
    });
  }
  for (std::thread& reader : readers) reader.join();

  using sim::Operation;
  EXPECT_GT(witness.Count(Operation::Kind::kGet, Operation::Outcome::kOk), 200u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kPut, Operation::Outcome::kOk), 20u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kPut, Operation::Outcome::kRefused), 20u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kDelete, Operation::Outcome::kOk), 20u) << witness.Summary();
  std::cout << witness.Summary();
  for (const std::string& wrong : witness.Violations()) ADD_FAILURE() << wrong;
}

}  // namespace
}  // namespace tokamak::daemon

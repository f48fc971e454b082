// Programs put, get and delete the same few ids on every node, on threads of their own, and let a
// Witness write down what they were answered.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/random.h"
#include "tests/daemon/tokd_process.h"
#include "tests/daemon/truth/witness.h"
#include "tokamak/client.h"

namespace tokamak::daemon {

// Until it is dropped.
class Programs final {
 public:
  static constexpr int kForEachNode = 2;
  static constexpr uint64_t kIdsAtOnce = 4;
  // Then others take their place: each trouble meets some, and the history of one id stays short
  // enough to be judged.
  static constexpr base::Duration kSeries = base::Seconds(4);

  // `nodes` from 1 on; what is missing takes no part. `first_series` names the ids, of which no
  // others of the same witness have any.
  Programs(Witness& witness, const std::vector<std::unique_ptr<TokdProcess>>& nodes, uint64_t first_series = 0);
  ~Programs();

  std::vector<std::string> AllIds() const;
  uint64_t series() const;

  // The longest that a get has taken beyond its time-out, on all nodes but those that stood still
  // themselves.
  base::Duration longest_beyond_deadline(const std::set<size_t>& but = {}) const;

 private:
  void Run(uint32_t node, const std::string& socket, base::Random random);
  void Act(uint32_t node, Client& client, base::Random& random);

  Witness& witness_;
  const uint64_t first_series_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::atomic<bool> stop_{false};
  std::vector<std::atomic<int64_t>> beyond_;  // picoseconds, by node
  std::vector<std::thread> threads_;
};

}  // namespace tokamak::daemon

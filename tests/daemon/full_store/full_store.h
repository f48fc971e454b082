// FullStore is two real tokd whose stores are full all the time, and the programs at them, which
// are killed at moments drawn from a seed, as full_store_program.cc has them.
//
// At the end all programs are killed together, and the stores have to add up: what is used is what
// the objects take, to the byte; every object that is left is whole; nothing is pinned, unsealed,
// on its way or held back; and once all is deleted, nothing is used.
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "lib/os/process/child_process.h"
#include "tests/daemon/full_store/full_store_tally.h"
#include "tests/daemon/tokd_process.h"

namespace tokamak::daemon {

struct FullStoreOptions {
  std::chrono::milliseconds duration{10'000};
  std::chrono::milliseconds progress{10'000};  // between two lines of it
  uint64_t seed = 1;
  int programs = 8;
  std::string memory = "32MiB";  // of each store
};

struct FullStoreReport {
  double seconds = 0;
  uint64_t created = 0, refused = 0, aborted = 0, got = 0, verified_bytes = 0, missed = 0, deleted = 0, kills = 0;
  uint64_t evicted = 0;
  double mean_fill = 0;  // of both stores, 1 is full
  uint64_t left_objects = 0, left_bytes = 0;
  uint64_t most_memory_more = 0;   // KiB of one daemon's own, at any time, than at the beginning
  std::vector<std::string> wrong;  // what was not as promised
  std::string Summary() const;     // one line
};

class FullStore final {
 public:
  explicit FullStore(const FullStoreOptions& options);

  // Once. Progress is a line to `out` now and then.
  FullStoreReport Run(std::ostream& out);

 private:
  static constexpr size_t kNodes = 2;

  struct Node {
    std::unique_ptr<TokdProcess> process;
    std::unique_ptr<Client> client;
    int descriptors = 0;
    uint64_t memory = 0;  // KiB
  };

  void StartProgram(size_t place);
  void MeetOnce();
  void Live(std::ostream& out);
  void Sample();
  void Judge();
  void JudgeAccount(Node& node, const std::string& name);
  void DeleteAll();
  void CountTally();
  std::string Progress() const;
  void Expect(bool good, const std::string& what);

  const FullStoreOptions options_;
  const testing_support::ShortFolder folder_;
  base::Random random_;
  std::vector<Node> nodes_;
  std::shared_ptr<FullStoreTally> tally_;
  std::vector<std::unique_ptr<os::ChildProcess>> programs_;
  uint64_t last_seed_ = 0;
  std::chrono::steady_clock::time_point began_;
  double fills_ = 0;
  uint64_t samples_ = 0;
  FullStoreReport report_;
};

}  // namespace tokamak::daemon

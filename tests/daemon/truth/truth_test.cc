// Real tokd processes keep what docs/consistency.md promises, with each directory: programs that
// put, get and delete the same ids while nodes stand still, are killed, and the directory is away,
// are judged by sim::History.
#include <gtest/gtest.h>
#include <signal.h>

#include <iostream>
#include <string>
#include <vector>

#include "tests/daemon/truth/programs.h"
#include "tests/daemon/truth/three_daemons.h"
#include "tests/daemon/truth/witness.h"

namespace tokamak::daemon {
namespace {

using TruthTest = ThreeDaemons;

INSTANTIATE_TEST_SUITE_P(Directory, TruthTest, kBothDirectories, NameOfDirectory);

TEST_P(TruthTest, PromisesHoldUnderFaults) {
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
  ReadAllAndJudge(witness, ids);

  using sim::Operation;
  EXPECT_GT(witness.Count(Operation::Kind::kGet, Operation::Outcome::kOk), 200u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kPut, Operation::Outcome::kOk), 20u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kPut, Operation::Outcome::kRefused), 20u) << witness.Summary();
  EXPECT_GT(witness.Count(Operation::Kind::kDelete, Operation::Outcome::kOk), 20u) << witness.Summary();
  std::cout << witness.Summary();
}

}  // namespace
}  // namespace tokamak::daemon

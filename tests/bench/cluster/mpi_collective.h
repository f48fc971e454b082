// MpiCollective keeps processes in step over MPI: non-blocking collectives, tested from timers of
// the node's loop, so that the node goes on serving its peers meanwhile.
//
// The first kShort of an operation it is tested every kQuickTest, after that every kSlowTest: ranks
// that wait for others to finish take no processor from them. So ranks leave a barrier that all
// reach at the same time within kQuickTest of each other, as far as the machine has a processor for
// each.
//
// MPI serves for this and for nothing that is measured.
// Thread rule: the thread that initialised MPI, which is the loop's.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/base/time.h"
#include "mpi.h"
#include "tests/bench/cluster/collective.h"

namespace tokamak::bench {

class MpiCollective final : public Collective {
 public:
  static constexpr base::Duration kShort = base::Milliseconds(5);
  static constexpr base::Duration kQuickTest = base::Microseconds(20);
  static constexpr base::Duration kSlowTest = base::Milliseconds(1);

  // All ranks of `communicator` that MPI has.
  MpiCollective(base::EventLoop& loop, MPI_Comm communicator);
  // With an operation under way the run has failed on this rank alone: MPI has no way out of a
  // collective, so this ends the program on all ranks.
  ~MpiCollective() override;
  MpiCollective(const MpiCollective&) = delete;
  MpiCollective& operator=(const MpiCollective&) = delete;

  uint32_t rank() const override { return rank_; }
  uint32_t ranks() const override { return ranks_; }
  base::Pending Gather(absl::Span<const uint8_t> mine, GatherCallback done) override;
  base::Pending Barrier(base::Task done) override;

 private:
  class Operation;

  base::Pending Begin(base::Task done);
  void Test();

  base::EventLoop& loop_;
  const MPI_Comm communicator_;
  uint32_t rank_ = 0;
  uint32_t ranks_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::vector<uint8_t> mine_;  // MPI's while an operation is under way, as is all_
  std::vector<uint8_t> all_;
  base::Time began_;
  Operation* operation_ = nullptr;  // null: dropped, or none
  base::Timer test_;
};

}  // namespace tokamak::bench

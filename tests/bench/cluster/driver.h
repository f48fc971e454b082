// Driver is one rank of a run: it gives objects to others, gets theirs, and measures how long that
// takes. All ranks run the same driver with the same plan.
//
// A repetition:
//
//   prepare   rank creates, fills and seals what it gives; works out the hashes of what it will get
//   ready     gather: every rank has prepared
//   start     barrier: all leave it together
//   get       everything at once; the rank's time is that until its last object is here
//   over      gather: these times. Only now may anybody's processor do anything else
//   check     what came is hashed and compared
//   checked   gather: all was right. Then originals are deleted, and copies with them
//
// If the plan keeps objects, originals stay for all repetitions of a case. Then the bytes that
// shall come have lain in memory before, so the room that copies returned is soiled in between.
//
// Any trouble of a rank reaches all with the next gather, and ends the run on all of them.
//
// It is logic: it runs over MPI in real time, and on a simulated cluster in virtual time.
// Law: no byte that was not compared enters a result: Run answers OK only if all were right.
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/node/node.h"
#include "lib/store/hash.h"
#include "tests/bench/cluster/collective.h"
#include "tests/bench/cluster/content.h"
#include "tests/bench/cluster/plan.h"
#include "tests/bench/cluster/puller.h"
#include "tests/bench/cluster/result.h"

namespace tokamak::bench {

class Driver final {
 public:
  using Callback = std::function<void(const absl::StatusOr<std::vector<CaseResult>>&)>;
  using Progress = std::function<void(const CaseResult&)>;

  // How long a rank waits for all others to get as far as itself, beyond the plan's time-out.
  static constexpr base::Duration kPatience = base::Seconds(120);

  // All must outlive it. `pullers` in the order of the plan's contenders. `progress` hears of each
  // case when it is over; may be null.
  Driver(base::EventLoop& loop, Collective& collective, node::Node& node, std::vector<Puller*> pullers, Plan plan,
         Progress progress);
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // Runs the plan, once. `done` runs once, with the same answer on every rank, unless a rank is
  // lost: then with kDeadlineExceeded on those that waited for it.
  void Run(Callback done);

  // The run has ended on this rank without the others knowing.
  bool lost_others() const { return lost_others_; }

 private:
  // Messages between ranks. Plain bytes: all ranks run the same program.
  struct Word {
    double seconds = 0;       // of a repetition
    double least_source = 1;  // as Repetition has it
    double elapsed = 0;       // seconds since the case began
    int32_t code = 0;         // of trouble
    char text[204] = {};
  };

  // An object of this repetition that comes to this rank.
  struct Incoming {
    Incoming(uint32_t rank, const Content& expected) : from(rank), content(expected) {}

    uint32_t from;
    Content content;
    uint64_t hash = 0;  // that it must have
    bool pinned = false;
    base::Pending handle;
  };

  const Case& now() const { return plan_.cases[case_]; }

  void NextCase();
  void Prepare();
  // Makes room for an object of this case, which `fill` then fills; without room the run has
  // failed, and goes on with `next`.
  void Reserve(const base::ObjectId& id, void (Driver::*fill)(), void (Driver::*next)());
  void CreateNext();
  void FillSlice();
  void Seal();
  void ExpectNext();
  void ExpectSlice();
  void SoilNext();
  void SoilSlice();
  void SayReady();
  void Start();
  void GetAll();
  void Got(Incoming& object, const absl::Status& status);
  void SayOver();
  void Count(absl::Span<const Word> words);
  void CheckNext();
  void Compare(const absl::StatusOr<uint64_t>& hash);
  void SayChecked();
  void DropCopies();
  void AwaitDirectory(base::Time until);
  void DeleteAll();
  void Next();

  // Tells all ranks of this one's trouble; `then` runs unless one has any.
  void Gather(const Word& word, std::function<void(absl::Span<const Word>)> then);
  void WaitFor(const char* what);
  void Fail(const absl::Status& status);
  std::string Where() const;
  void Finish(absl::StatusOr<std::vector<CaseResult>> result);

  base::EventLoop& loop_;
  Collective& collective_;
  node::Node& node_;
  const std::vector<Puller*> pullers_;
  const Plan plan_;
  const Progress progress_;
  const store::Owner who_;
  Callback done_;

  size_t case_ = 0;
  uint32_t repetition_ = 0;  // warm-up included
  base::Time case_began_;
  std::vector<Repetition> counted_;  // of this case
  Stop stop_ = Stop::kNotYet;
  std::vector<CaseResult> results_;
  bool lost_others_ = false;
  absl::Status trouble_;  // the first, until it is reported

  std::vector<Content> outgoing_;
  size_t next_ = 0;        // of outgoing_ or incoming_, whose turn it is
  bool creating_ = false;  // not all of outgoing_ are there
  absl::Span<uint8_t> filling_;
  uint64_t slice_at_ = 0;
  std::unique_ptr<store::StreamHash> hash_;
  std::vector<uint8_t> slice_;
  std::vector<Incoming> incoming_;
  size_t awaited_ = 0;  // gets, confirmations or deletions under way
  base::Time started_;
  double seconds_ = 0;
  std::vector<double> shares_;  // objects per second from each source, as they come

  std::vector<base::Pending> calls_;  // confirmations or deletions
  base::Pending call_;
  base::Timer step_;
  base::Timer deadline_;
};

}  // namespace tokamak::bench

// World draws the life of a cluster (life.h) from a seed: programs put, get and delete the same few
// ids while nodes freeze beyond their leases, lose the directory or their power, and the network
// loses packets. Trials (trials.h) lead it to rare states. Then all is healed, and the history
// (history.h) judged.
//
// A seed's life is the same to the last packet: compare trace_hash().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "lib/base/random.h"
#include "sim/worlds/history.h"
#include "sim/worlds/life.h"
#include "sim/worlds/trials.h"
#include "sim/worlds/world_options.h"

namespace tokamak::sim {

class World final {
 public:
  explicit World(const WorldOptions& options);

  // Returns violations, a sentence each.
  std::vector<std::string> Run();

  // For reports of failures.
  std::string Describe() const;

  const History& history() const { return life_.history; }
  uint64_t trace_hash() { return life_.cluster().hash.hash(); }

 private:
  // Drawn by its weight.
  struct Action {
    const char* name;
    uint32_t weight;
    void (World::*run)();
  };
  static absl::Span<const Action> Actions();

  // Drawn at each step, by its probability.
  struct Fault {
    const char* name;
    double WorldOptions::*chance;
    void (World::*run)();
  };
  static absl::Span<const Fault> Faults();

  void Act();
  void MeetFaults();

  void Put();
  void Delete();
  void Get();
  void DeleteWhileRead();
  void DropOne();
  void Locate();
  void LocateAndDropMany();
  void LocateOneOrMany();
  void DeleteOrEvictWhatJustCame();
  void ReplaceWhileTheDirectoryIsAway();
  void DeleteEvictOrReplace();

  void Freeze();
  void Cut();
  void Partition();
  void Crash();
  void CrashTheDirectory();
  void Slow();
  void Lag();
  void Mend();

  void FollowUp(uint32_t deleter, const std::string& id);
  void JudgeReads();
  void JudgeDeletions();

  const WorldOptions options_;
  Life life_;
  base::Random& random_;
  Trials trials_;
  std::vector<uint32_t> acted_;    // counts, by place in Actions()
  std::vector<uint32_t> faulted_;  // likewise, in Faults()
};

}  // namespace tokamak::sim

// World is a life of a cluster, drawn from a seed: programs put, get and delete the same few ids again and again while nodes stand
// still for longer than their leases, lose their way to the directory or their power, and the network loses packets. Then all is
// healed, and the history (history.h) is judged.
//
// The same seed gives the same life, to the last packet: trace_hash() says whether it did.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "sim/cluster.h"
#include "sim/history.h"

namespace tokamak::sim {

struct WorldOptions {
  uint64_t seed = 1;
  uint32_t nodes = 3;
  uint32_t ids = 6;
  uint32_t steps = 300;
  base::Duration most_between = base::Milliseconds(40);  // steps
  // Faults, with their probabilities for each step.
  double freeze = 0.01;     // a node stands still for up to three leases
  double cut = 0.01;        // a node and the directory's do not reach each other
  double partition = 0.01;  // a node reaches nobody
  double crash = 0.005;     // a node loses its power, and starts again
  double directory_crash = 0.002;
  double slow = 0.01;   // the way between two nodes gets slow, so that pulls are under way for long
  double mend = 0.03;   // ends cuts, partitions and slow ways
  double loss = 0.001;  // of packets

  // What a seed alone says: how many nodes, and which faults.
  static WorldOptions OfSeed(uint64_t seed);
};

class World final {
 public:
  explicit World(const WorldOptions& options);
  ~World();

  // Lives, heals, and returns what was wrong, in words.
  std::vector<std::string> Run();

  const History& history() const { return history_; }
  uint64_t trace_hash() const { return cluster_->trace.hash(); }

 private:
  // Something that a program waits for.
  struct Asked {
    size_t place = 0;  // in the history
    std::shared_ptr<Got> got;
    base::Pending handle;
    bool done = false;
  };

  void Act();
  void Put();
  void Get();
  void Delete();
  void DropSome();
  void Collect();
  void Trouble();
  void Crash(uint32_t node);
  void Heal();
  void Judge();
  void ReadAll(bool last);
  size_t Begin(Operation::Kind kind, uint32_t node, const std::string& id);
  void EndPut(size_t place, const absl::Status& status);
  int64_t Now() const { return cluster_->scheduler.Now().picoseconds(); }
  uint32_t AnyNode() { return static_cast<uint32_t>(random_.Below(options_.nodes)); }
  std::string AnyId() { return "object" + std::to_string(random_.Below(options_.ids)); }

  const WorldOptions options_;
  base::Random random_;
  History history_;
  std::vector<std::string> wrong_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::vector<std::shared_ptr<Asked>>> asked_;  // by node
};

}  // namespace tokamak::sim

// World is a life of a cluster, drawn from a seed: programs put, get and delete the same few ids
// again and again while nodes stand still for longer than their leases, lose their way to the
// directory or their power, and the network loses packets. Then all is healed, and the history
// (history.h) is judged.
//
// The same seed gives the same life, to the last packet: trace_hash() says whether it did.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
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
  bool calm = false;                                     // no faults
  base::Duration latency = base::Microseconds(2);
  int64_t picoseconds_per_byte = 80;

  // Faults, with their probabilities for each step.
  double freeze = 0.01;     // a node stands still for up to three leases
  double cut = 0.01;        // a node and the directory's do not reach each other
  double partition = 0.01;  // a node reaches nobody
  double crash = 0.005;     // a node loses its power, and starts again
  double directory_crash = 0.002;
  double slow = 0.03;  // the way between two nodes gets slow, so that pulls are under way for long
  double lag =
      0.03;  // the way from one node to another gets long, so that words on it are overtaken by those on others
  double mend = 0.03;   // ends cuts, partitions and slow ways
  double loss = 0.001;  // of packets

  // Where no two nodes have a link of their own, no way gets slow or long.
  NetworkMaker network = MakeSimNetwork;

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
  uint64_t trace_hash() const { return cluster_->hash.hash(); }

 private:
  // Something that a program waits for. Dropped, it must never be answered.
  struct Asked {
    size_t place = 0;  // in the history
    std::shared_ptr<Got> got;
    base::Pending handle;
    bool done = false;
  };

  struct Last {
    uint32_t node = 0;
    uint64_t size = 0;
  };

  void Act();
  void Chase();
  void Look();
  void Crowd();
  void Flicker();
  void Blackout();
  void Fetch(uint32_t node, const std::string& id);
  void DropSome();
  void Live(base::Duration time);
  void LookWhoIsCutOff();
  void FollowUp();
  void ReadEverywhere(const std::string& id);
  void Collect();
  void Trouble();
  void Lag(uint32_t from, uint32_t to);
  void Freeze(uint32_t node, base::Duration time);
  void Crash(uint32_t node);
  void Heal();
  void Judge();
  void ReadAll(bool last);
  void Finale();
  void AwaitAll();
  base::Duration UpTo(base::Duration most) {
    return base::Duration::Picoseconds(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.picoseconds()))));
  }
  void PutOn(uint32_t node, const std::string& id, uint64_t size, bool confirmed);
  void GetOn(uint32_t node, const std::string& id, base::Duration timeout);
  void DeleteFrom(uint32_t node, const std::string& id);
  std::shared_ptr<Asked> Locate(uint32_t node, const std::string& id, base::Duration wait);
  void Drop(std::shared_ptr<Asked> asked);
  void Watch(uint32_t node);
  size_t Begin(Operation::Kind kind, uint32_t node, const std::string& id);
  const node::Membership& MembershipOf(uint32_t node) { return (*cluster_)[node].node().membership(); }
  int64_t Now() const { return cluster_->time.Now().picoseconds(); }
  uint32_t AnyNode() { return static_cast<uint32_t>(random_.Below(options_.nodes)); }
  std::string AnyId() { return "object" + std::to_string(random_.Below(options_.ids)); }

  const WorldOptions options_;
  base::Random random_;
  History history_;
  std::vector<std::string> wrong_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<std::vector<std::shared_ptr<Asked>>> asked_;  // by node
  std::vector<std::shared_ptr<Asked>> dropped_;
  std::vector<base::Pending> events_;                      // by node
  std::vector<std::pair<uint32_t, std::string>> deleted_;  // just now, from these nodes
  std::vector<base::Time> frozen_until_;                   // by node
  std::vector<int64_t> all_announced_;                     // by node: until then, as far as is known
  absl::optional<base::Time> directory_crashed_;           // and who is cut off is not known yet
  base::Pending directory_asked_;
  std::map<std::string, Last> last_;  // put of each id
};

}  // namespace tokamak::sim

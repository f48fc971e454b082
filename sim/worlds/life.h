// Life is a cluster that lives: programs ask it for things, faults happen to it, and everything
// asked and answered goes into a history (history.h), with what excuses a node.
//
// It draws only details; World (world.h) and its trials (trials.h) decide what happens.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/random.h"
#include "sim/cluster/cluster.h"
#include "sim/worlds/history.h"
#include "sim/worlds/world_options.h"

namespace tokamak::sim {

class Life final {
 public:
  // A call that a program waits for. Dropped, it must never be answered.
  struct Asked {
    size_t place = 0;  // in the history
    std::shared_ptr<Got> got;
    base::Pending handle;
    bool done = false;
  };

  // The latest put of an id.
  struct Last {
    uint32_t node = 0;
    uint64_t size = 0;
  };

  explicit Life(const WorldOptions& options);
  ~Life();

  // Lets time pass. `deleted` runs as soon as a deletion of one of the ids has said OK, with the
  // node that asked; it may ask for more.
  void Pass(base::Duration time);
  void OnDeleted(std::function<void(uint32_t node, const std::string& id)> deleted) {
    on_deleted_ = std::move(deleted);
  }
  void ForgetDeleted() { deleted_.clear(); }

  // ---- programs

  void PutOn(uint32_t node, const std::string& id, uint64_t size, bool confirmed);
  void GetOn(uint32_t node, const std::string& id, base::Duration timeout);
  void DeleteFrom(uint32_t node, const std::string& id);
  void ReadEverywhere(const std::string& id);
  void Fetch(uint32_t node, const std::string& id);  // a get that is waited for
  void ReadAtTheEnd(const std::string& id, bool last);

  // Waits for a place, and keeps the call until Collect, or cancels it.
  [[nodiscard]] std::shared_ptr<Asked> Locate(uint32_t node, const std::string& id, base::Duration wait);
  void Keep(uint32_t node, std::shared_ptr<Asked> asked) { asked_[node].push_back(std::move(asked)); }
  void Drop(std::shared_ptr<Asked> asked);
  void DropOne(uint32_t node, size_t which);
  size_t asked(uint32_t node) const { return asked_[node].size(); }

  // Gives back the pins of answered gets, sometimes after a while.
  void Collect();
  // Waits until everything asked of one node, or of all, has been answered.
  bool Await(uint32_t node, base::Duration limit);
  void AwaitLast(uint32_t node, base::Duration limit);  // for its latest call
  void AwaitAll();

  // Puts objects that nobody asks for: 64 bytes each, not in the history.
  void Load(uint32_t node, uint32_t count);
  // Puts larger ones until there is no room; then perhaps deletes every second: there is room, in
  // pieces.
  void Fill(uint32_t node);
  void Unload(uint32_t node);

  // ---- faults

  void Freeze(uint32_t node, base::Duration time);  // perhaps only its control loop
  void FreezeAll(uint32_t node, base::Duration time);
  void Crash(uint32_t node);
  void Cut(uint32_t node);  // from the directory
  void Partition(uint32_t node) { cluster_->network.Partition({(*cluster_)[node].address}); }
  void Slow(uint32_t a, uint32_t b);
  void Lag(uint32_t from, uint32_t to, base::Duration more);
  void Mend();
  void LoseEntry(const std::string& id);  // the directory no longer knows who has it

  // Returns true if `node` is in the directory, which has heard of everything that came and went
  // there.
  bool HasToldAll(uint32_t node);
  // Waits until no fault is left and every node has announced everything to the directory. Returns
  // false if that takes too long.
  bool Recover();

  // Ends `node` as a daemon with --evacuate does, and brings it back empty. `meanwhile` runs
  // repeatedly during that. Checks that what it kept is kept elsewhere.
  void Evacuate(uint32_t node, const std::function<void(bool evacuated)>& meanwhile);

  // Ends all faults.
  void Heal();

  void Wrong(const std::string& what) { wrong_.push_back(what); }
  bool any_dropped_answered() const;

  base::Time Now() const { return cluster_->time.Now(); }
  base::Duration UpTo(base::Duration most) {
    return base::Duration::Picoseconds(static_cast<int64_t>(random.Below(static_cast<uint64_t>(most.picoseconds()))));
  }
  uint32_t AnyNode() { return static_cast<uint32_t>(random.Below(options.nodes)); }
  uint32_t AnyNodeBut(uint32_t node);
  uint32_t AnyNodeButTheDirectorys() { return 1 + static_cast<uint32_t>(random.Below(options.nodes - 1)); }
  std::string AnyId() { return IdOf(static_cast<uint32_t>(random.Below(options.ids))); }
  static std::string IdOf(uint32_t i) { return "object" + std::to_string(i); }
  // Ids of a trial, which deletes them in the end.
  static std::string PassingId(uint32_t i) { return "passing" + std::to_string(i); }
  const Last& last(const std::string& id) { return last_[id]; }
  const node::Membership& MembershipOf(uint32_t node) { return (*cluster_)[node].node().membership(); }
  Cluster& cluster() { return *cluster_; }
  std::vector<std::string> Violations() const;

  static constexpr uint32_t kPassingIds = 120;
  static constexpr uint32_t kMostReaders = 9;

  const WorldOptions options;
  base::Random random;
  History history;

 private:
  // A restart of the directory that not all nodes have got over.
  struct Outage {
    base::Time begin;
    std::vector<uint64_t> renewals;  // of each node, when no earlier directory can answer any more
    bool counted = false;            // true if `renewals` is known: after a deadline
    bool looked = false;             // true if the nodes that are cut off are known: after a lease
    std::vector<bool> cut_off;
  };

  static std::string LoadName(uint32_t node, uint32_t i) {
    return "load of " + std::to_string(node) + ": " + std::to_string(i);
  }
  void DeleteLoad(uint32_t node, uint32_t i);
  void PassUntil(base::Time end);
  void LookWhoIsFenced();
  void LookAtOutage();
  void CountRenewals();
  void NoteThatAllIsTold();
  void EndOutage();
  void Subscribe(uint32_t node);
  bool HasRoom(uint32_t leaving, uint64_t bytes) const;
  void LookWhatIsLeft(uint32_t node, const node::EvacuationReport& report, bool had_room);
  size_t Begin(Operation::Kind kind, uint32_t node, const std::string& id);
  int64_t When() const { return Now().picoseconds(); }

  std::vector<std::string> wrong_;
  std::unique_ptr<Cluster> cluster_;
  std::function<void(uint32_t node, const std::string& id)> on_deleted_;
  std::vector<std::vector<std::shared_ptr<Asked>>> asked_;  // by node
  std::vector<std::shared_ptr<Asked>> dropped_;
  std::vector<base::Pending> events_;                      // by node
  std::vector<std::pair<uint32_t, std::string>> deleted_;  // just now, with the node that asked
  std::vector<base::Time> frozen_until_;                   // by node
  std::vector<int64_t> all_announced_;  // by node: the time until which everything is announced, as far as is known
  std::set<base::ObjectId> asked_to_delete_;  // since an evacuation began
  std::vector<uint32_t> loads_;               // by node: number of objects of Load
  std::optional<Outage> outage_;
  std::map<std::string, Last> last_;
};

}  // namespace tokamak::sim

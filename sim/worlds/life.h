// Life is a cluster that lives: programs ask, faults happen, and all calls and answers go into a
// history (history.h), with what excuses a node.
//
// It draws details; World (world.h) and trials (trials.h) decide.
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
  // A program's call. Dropped, it must never be answered.
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

  explicit Life(const WorldOptions& options);
  ~Life();

  // Lets time pass. `deleted` runs as soon as a deletion has said OK, with the asking node; it may
  // ask for more.
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
  void Fetch(uint32_t node, const std::string& id);  // a get, awaited
  void ReadAtTheEnd(const std::string& id, bool last);

  // Waits for a place, and keeps the call until Collect, or cancels it.
  [[nodiscard]] std::shared_ptr<Asked> Locate(uint32_t node, const std::string& id, base::Duration wait);
  void Keep(uint32_t node, std::shared_ptr<Asked> asked) { asked_[node].push_back(std::move(asked)); }
  void Drop(std::shared_ptr<Asked> asked);
  void DropOne(uint32_t node, size_t which);
  size_t asked(uint32_t node) const { return asked_[node].size(); }

  // Gives back pins of answered gets, sometimes later.
  void Collect();
  // Waits until all asked of one node, or of all, is answered.
  bool Await(uint32_t node, base::Duration limit);
  void AwaitLast(uint32_t node, base::Duration limit);  // of its latest call
  void AwaitAll();

  // Puts objects of 64 bytes that nobody asks for, not in the history.
  void Load(uint32_t node, uint32_t count);
  // Puts larger ones until there is no room; then perhaps deletes every second: room, in pieces.
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
  void LoseEntry(const std::string& id);  // the directory forgets who has it

  // True if the directory has heard of all that came and went on `node`.
  bool HasToldAll(uint32_t node);
  // Waits until no fault is left and all is announced. False: that takes too long.
  bool Recover();

  // Ends `node` as --evacuate does, and brings it back empty, with `meanwhile` run repeatedly.
  // Checks that its objects are kept elsewhere.
  void Evacuate(uint32_t node, const std::function<void(bool evacuated)>& meanwhile);

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
  struct Outage {
    base::Time begin;
    std::vector<uint64_t> renewals;  // of each node, once no earlier directory can answer
    bool counted = false;            // `renewals` is known: after a deadline
    bool looked = false;             // cut-off nodes are known: after a lease
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
  std::vector<std::vector<std::shared_ptr<Asked>>> asked_;
  std::vector<std::shared_ptr<Asked>> dropped_;
  std::vector<base::Pending> events_;                      // by node
  std::vector<std::pair<uint32_t, std::string>> deleted_;  // just now, with the asking node
  std::vector<base::Time> frozen_until_;                   // by node
  std::vector<int64_t> all_announced_;                     // by node: until when all is announced, as far as known
  std::set<base::ObjectId> asked_to_delete_;               // since an evacuation began
  std::vector<uint32_t> loads_;                            // by node: objects of Load
  std::optional<Outage> outage_;
  std::map<std::string, Last> last_;
};

}  // namespace tokamak::sim

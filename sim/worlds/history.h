// History is what programs asked of a cluster and what they were answered, in time; Violations()
// judges it by docs/consistency.md.
//
// Filled alike by a simulated cluster (sim/worlds/world.h) and by programs of real daemons. A
// content is a number that its put chose, and a get reads back.
//
//   deleted     after the OK of a Delete of a visible object no later Get returns that content
//   one         all nodes see the contents of an id in one order: after a newer, no older
//   whole       a Get returns what a Put of that id has put, and no content before it was put
//   refused     a content whose refusal its creator has heard of is not seen elsewhere afterwards
//   kept        at the end everybody reads the same content, which is neither deleted nor refused
//   listed      every call is answered as its row of the contract says
//
// If the history is complete (IsComplete), also
//
//   own         a content is read on its node until it is deleted or refused
//   free        a put is refused only while another content may have the id: not after its deletion
//   two         of two confirmed puts the second says OK only if the first may have been deleted
//   seen        in a calm life, everybody reads a confirmed content from then on
//   found       a Delete says NOT_FOUND only if no confirmed content stands
//
// A content is visible once another node than its creator's has read it, or a confirmed put said
// OK; until then it may be refused (docs/consistency.md, One content).
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tokamak::sim {

struct Operation {
  enum class Kind : uint8_t { kPut, kGet, kDelete };
  enum class Outcome : uint8_t {
    kUnknown,  // not answered, or cancelled: may take effect, even later
    kOk,
    kNothing,  // NOT_FOUND
    kRefused,  // ALREADY_EXISTS
    kFailed,   // UNAVAILABLE, DEADLINE_EXCEEDED: no promise
    kWrong,    // not in the contract
  };

  Kind kind = Kind::kGet;
  Outcome outcome = Outcome::kUnknown;
  std::string id;
  uint32_t node = 0;
  int64_t begin = 0;  // any unit, one clock
  int64_t end = 0;
  uint64_t content = 0;    // put: the content; OK get: the content read
  bool confirmed = false;  // put
  bool last = false;       // get: at the end, all healed
  bool decided = false;    // failed delete: its text reports what it did; nothing later
  bool undone = false;     // failed delete: its text reports that it did nothing
  std::string error = {};
};

class History final {
 public:
  // Returns its place.
  size_t Begin(Operation operation) {
    operations_.push_back(std::move(operation));
    return operations_.size() - 1;
  }
  void End(size_t place, Operation::Outcome outcome, int64_t end, uint64_t content = 0, const std::string& error = {}) {
    operations_[place].error = error;
    operations_[place].outcome = outcome;
    operations_[place].end = end;
    if (operations_[place].kind == Operation::Kind::kGet) operations_[place].content = content;
  }

  // A get after all has healed: it must be answered.
  void MarkLast(size_t place) { operations_[place].last = true; }

  // A failed delete reported what it did.
  void MarkDecided(size_t place) { operations_[place].decided = true; }
  // A failed delete reported that it did nothing.
  void MarkUndone(size_t place) { operations_[place].undone = true; }

  // The creator, without confirmation, heard of the refusal.
  void Refused(const std::string& id, uint64_t content, int64_t when);

  // The creators of all refused contents have heard so, and Lost names every node given up.
  void IsComplete() { complete_ = true; }

  // No fault in this life: a get with this much time finds what is there.
  void IsCalm(int64_t patience) { patience_ = patience; }

  // `node` lost its memory, or was given up, and others may have got its ids.
  void Lost(uint32_t node, int64_t when) { losses_.push_back({node, when}); }

  // `node` ended in order at `when`, having handed over from `begin` on: its contents are lost only
  // with another node.
  void Left(uint32_t node, int64_t begin, int64_t when) { leavings_.push_back({node, begin, when}); }

  // The directory lost its memory at `when`. Contents put before `begin` were announced, and stand;
  // later ones, until all is announced again (DirectoryKnows), may be seen, then refused.
  void DirectoryForgot(int64_t begin, int64_t when) { outages_.push_back({begin, when, kNever, {}}); }
  void DirectoryKnows(int64_t when) { outages_.back().end = when; }

  // `node` was cut off from the directory beyond a lease, or given up: its contents may be read
  // though deleted, or lose their ids to newer ones.
  void WasCutOff(uint32_t node) { outages_.back().cut_off.insert(node); }

  // The directory has heard of all that came and went on `node`: a put that failed there holds no
  // id.
  void HasToldAll(uint32_t node, int64_t when) { told_.push_back({node, when}); }

  size_t size() const { return operations_.size(); }

  // A line each.
  std::string Describe(const std::string& id) const;

  // In words.
  std::vector<std::string> Violations() const;

 private:
  struct Loss {
    uint32_t node;
    int64_t when;
  };
  struct Told {
    uint32_t node;
    int64_t when;
  };
  struct Leaving {
    uint32_t node;
    int64_t begin;
    int64_t when;
  };
  struct Outage {
    int64_t begin;
    int64_t forgot;
    int64_t end;
    std::set<uint32_t> cut_off;
  };
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  using Operations = std::vector<const Operation*>;  // of one id, by begin

  void CheckDeleted(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckOne(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckWhole(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckRefused(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckKept(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckListed(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckOwn(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckFree(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckTwo(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckSeen(const Operations& operations, std::vector<std::string>& wrong) const;
  void CheckFound(const Operations& operations, std::vector<std::string>& wrong) const;
  bool StandsUntil(const Operations& operations, const Operation& put, int64_t until) const;
  bool MayHaveTheId(const Operations& operations, const Operation& other, const Operation& put) const;
  bool WasLost(const Operation& put, int64_t until) const;
  bool MayBeDisplaced(const Operations& operations, const Operation& put, int64_t until) const;
  bool MayHaveBeenUnknown(const Operation& put, int64_t when) const;
  bool IsWithdrawn(const Operation& put, int64_t when) const;
  static bool MayNotBeKnownAgain(const Outage& outage, const Operation& put);
  const Leaving* LeavingAfter(const Operation& put) const;
  bool InOutage(int64_t time) const;
  bool MayComeBack(const Operations& operations, const Operation& put, int64_t until) const;
  bool MayNotBeKnownTo(const Operations& operations, const Operation& deletion, const Operation& put,
                       const Operation& read) const;

  std::vector<Operation> operations_;
  std::vector<Loss> losses_;
  std::vector<Leaving> leavings_;
  std::vector<Outage> outages_;
  std::vector<Told> told_;
  bool complete_ = false;
  int64_t patience_ = INT64_MAX;
};

}  // namespace tokamak::sim

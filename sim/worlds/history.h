// History is what programs asked of a cluster and what they were answered, in time; Violations()
// judges it by docs/consistency.md.
//
// It knows nothing of nodes or messages: a simulated cluster (sim/worlds/world.h) and programs of
// real daemons fill it alike. A content is a number that its put chose, and that a get reads back.
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
// A content is visible once another node than its creator's has read it, or a confirmed put of it
// has said OK. A content that only its own node has read may still be refused (docs/consistency.md,
// One content).
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
    kUnknown,  // not answered, or cancelled: it may take effect, even later
    kOk,
    kNothing,  // NOT_FOUND
    kRefused,  // ALREADY_EXISTS
    kFailed,   // UNAVAILABLE, DEADLINE_EXCEEDED: promises nothing
    kWrong,    // anything else: the contract does not list it
  };

  Kind kind = Kind::kGet;
  Outcome outcome = Outcome::kUnknown;
  std::string id;
  uint32_t node = 0;
  int64_t begin = 0;  // any unit, one clock
  int64_t end = 0;
  uint64_t content = 0;    // put: the content; get that is OK: the content read
  bool confirmed = false;  // put only
  bool last = false;       // get: at the end, after everything has healed
  bool decided = false;    // delete that failed: its text reports what it did, and it does nothing later
  bool undone = false;     // delete that failed: its text reports that it did nothing
  std::string error = {};  // for people
};

class History final {
 public:
  // Returns its place, for its end.
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

  // The get at `place` is one of the last: everything has healed, and it must be answered.
  void MarkLast(size_t place) { operations_[place].last = true; }

  // The delete at `place` failed, with a text that reports what it did.
  void MarkDecided(size_t place) { operations_[place].decided = true; }
  // The delete at `place` failed, with a text that reports that it did nothing.
  void MarkUndone(size_t place) { operations_[place].undone = true; }

  // The creator of a content, put without confirmation, heard that it is refused.
  void Refused(const std::string& id, uint64_t content, int64_t when);

  // The creators of all refused contents have heard so, and Lost names every node that was given
  // up.
  void IsComplete() { complete_ = true; }

  // Nothing goes wrong in this life: a get that has this much time finds what is there.
  void IsCalm(int64_t patience) { patience_ = patience; }

  // The contents of `node` are gone with it: it lost its memory, or it was given up and another
  // content may have got the id.
  void Lost(uint32_t node, int64_t when) { losses_.push_back({node, when}); }

  // `node` ended in order at `when`, after it had handed over what it kept, from `begin` on. Its
  // contents are elsewhere: lost only with some other node.
  void Left(uint32_t node, int64_t begin, int64_t when) { leavings_.push_back({node, begin, when}); }

  // The directory lost its memory at `when`. Everything put before `begin` had been announced then,
  // and stands. Later contents, until everybody has announced everything again (DirectoryKnows),
  // may be seen for a while and then be refused.
  void DirectoryForgot(int64_t begin, int64_t when) { outages_.push_back({begin, when, kNever, {}}); }
  void DirectoryKnows(int64_t when) { outages_.back().end = when; }

  // `node` was cut off from the directory then, for longer than a lease, or had been given up: its
  // contents may be read though the id was deleted meanwhile, or lose their id to newer ones.
  void WasCutOff(uint32_t node) { outages_.back().cut_off.insert(node); }

  // `node` is in the directory, which has heard of everything that came and went there: a put that
  // failed there no longer holds its id.
  void HasToldAll(uint32_t node, int64_t when) { told_.push_back({node, when}); }

  size_t size() const { return operations_.size(); }

  // Returns everything that was asked about one id, a line each, to find the cause of a violation.
  std::string Describe(const std::string& id) const;

  // Returns the violations in words; empty if everything was as promised.
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
  using Operations = std::vector<const Operation*>;  // of one id, in the order in which they began

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

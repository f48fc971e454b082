// History is what programs asked of a cluster and what they were answered, in time; Violations()
// judges it by docs/consistency.md.
//
// It knows nothing of nodes or messages: it is filled by a simulated cluster (sim/worlds/world.h) and by
// programs of real daemons alike. A content is a number that its put chose, and that a get reads
// back.
//
//   deleted     after a Delete of an object that was visible has said OK no Get that begins later returns that content
//   one         no two nodes see the contents of one id in different orders: once a newer was seen, the older never is again
//   whole       a Get returns what a Put of that id has put, and no content before it was put
//   refused     a content that its creator was told is refused is not seen elsewhere afterwards
//   kept        what was put, and neither deleted nor refused, is read at the end by everybody; all read the same
//   listed      no call is answered otherwise than its row of the contract says
//
// Where the history is complete (IsComplete), also
//
//   own         what was put is read on its node until it is deleted or refused
//   free        a put is refused only while another content may have the id: never after its deletion has said OK
//   two         of two confirmed puts the second says OK only when the first may have been deleted
//   seen        in a calm life, what was confirmed is read by everybody from then on
//   found       a Delete says NOT_FOUND only where nothing that was confirmed stands
//
// A content is visible once another node than its creator's has read it, or a confirmed put of it
// has said OK. What only its own node has read may still be refused (docs/consistency.md, One
// content).
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
    kUnknown,  // not answered, or cancelled: it may have happened, even later
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
  uint64_t content = 0;    // put: which; get that is OK: which was read
  bool confirmed = false;  // put
  bool last = false;       // get: at the end, when everything has healed
  bool decided = false;    // delete that failed: its text says what it did, and it does nothing later
  bool undone = false;     // delete that failed: its text says that it did nothing
  std::string error = {};  // for people
};

class History final {
 public:
  // Returns its place, to be ended later.
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

  // The delete at `place` failed, with a text that says what was done.
  void MarkDecided(size_t place) { operations_[place].decided = true; }
  // The same, and nothing was.
  void MarkUndone(size_t place) { operations_[place].undone = true; }

  // The creator of a content was told that it is refused, which had been put without asking.
  void Refused(const std::string& id, uint64_t content, int64_t when);

  // The creators of all refused contents are told, and every node that was given up is named by
  // Lost.
  void IsComplete() { complete_ = true; }

  // Nothing goes wrong in this life: a get that has this much time finds what is there.
  void IsCalm(int64_t patience) { patience_ = patience; }

  // What `node` has put is gone with it: it lost its memory; or it was given up, and another
  // content may have got the id.
  void Lost(uint32_t node, int64_t when) { losses_.push_back({node, when}); }

  // `node` ended in order at `when`, after it had handed over what it kept, from `begin` on. What
  // was put on it is elsewhere: lost only with some other node.
  void Left(uint32_t node, int64_t begin, int64_t when) { leavings_.push_back({node, begin, when}); }

  // The directory lost its memory at `when`. All that was put before `begin` had been announced
  // then: it stands. What was put later, until everybody has told everything again
  // (DirectoryKnows), may be seen for a while and then be refused.
  void DirectoryForgot(int64_t begin, int64_t when) { outages_.push_back({begin, when, kNever, {}}); }
  void DirectoryKnows(int64_t when) { outages_.back().end = when; }

  // `node` was cut off from the directory then, for longer than a lease, or had been given up: what
  // it has may be read though the id was deleted meanwhile, or lose its id to what is newer.
  void WasCutOff(uint32_t node) { outages_.back().cut_off.insert(node); }

  // `node` is in the directory, which has heard of all that came and went there: a put that had
  // failed there holds its id no more.
  void HasToldAll(uint32_t node, int64_t when) { told_.push_back({node, when}); }

  size_t size() const { return operations_.size(); }

  // All that was asked about one id, a line each, for whoever looks for the cause of a violation.
  std::string Describe(const std::string& id) const;

  // In words; none: everything was as promised.
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
  using Operations = std::vector<const Operation*>;  // one id's, in the order they began

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

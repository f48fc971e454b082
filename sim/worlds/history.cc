#include "sim/worlds/history.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tokamak::sim {

namespace {

using Kind = Operation::Kind;
using Outcome = Operation::Outcome;

bool IsRead(const Operation& operation) { return operation.kind == Kind::kGet && operation.outcome == Outcome::kOk; }

std::string Words(const Operation& operation) {
  static constexpr const char* kKinds[] = {"put", "get", "delete"};
  static constexpr const char* kOutcomes[] = {"unknown", "ok", "nothing", "refused", "failed", "wrong"};
  return absl::StrCat(kKinds[static_cast<size_t>(operation.kind)], "(", operation.id, ") on n", operation.node, " [",
                      operation.begin, ", ", operation.end, "] ", kOutcomes[static_cast<size_t>(operation.outcome)],
                      operation.content == 0 ? "" : absl::StrCat(" content ", operation.content),
                      operation.error.empty() ? "" : absl::StrCat(" (", operation.error, ")"));
}

const Operation* PutOf(const std::vector<const Operation*>& operations, uint64_t content) {
  for (const Operation* operation : operations) {
    if (operation->kind == Kind::kPut && operation->content == content) return operation;
  }
  return nullptr;
}

// True if `deletion` may have acted between these moments: an unanswered one also after it was
// given up; NOT_FOUND deleted nothing.
bool MayAct(const Operation& deletion, int64_t from, int64_t until) {
  if (deletion.kind != Kind::kDelete || deletion.begin > until) return false;
  if (deletion.outcome == Outcome::kNothing || deletion.undone) return false;
  const bool open =
      deletion.outcome == Outcome::kUnknown || (deletion.outcome == Outcome::kFailed && !deletion.decided);
  return open || deletion.end >= from;
}

int64_t VisibleFrom(const std::vector<const Operation*>& operations, const Operation& put) {
  int64_t from = std::numeric_limits<int64_t>::max();
  if (put.confirmed && put.outcome == Outcome::kOk) from = put.end;
  for (const Operation* read : operations) {
    if (IsRead(*read) && read->content == put.content && read->node != put.node) from = std::min(from, read->end);
  }
  return from;
}

}  // namespace

void History::Refused(const std::string& id, uint64_t content, int64_t when) {
  for (Operation& put : operations_) {
    if (put.kind != Kind::kPut || put.id != id || put.content != content) continue;
    if (put.confirmed || put.outcome != Outcome::kOk) return;
    put.outcome = Outcome::kRefused;
    put.end = when;
  }
}

std::string History::Describe(const std::string& id) const {
  std::string text;
  for (const Operation& operation : operations_) {
    if (operation.id == id) absl::StrAppend(&text, Words(operation), "\n");
  }
  for (const Loss& loss : losses_) absl::StrAppend(&text, "n", loss.node, " lost what it has at ", loss.when, "\n");
  return text;
}

std::vector<std::string> History::Violations() const {
  std::map<std::string, Operations> by_id;
  for (const Operation& operation : operations_) by_id[operation.id].push_back(&operation);
  std::vector<std::string> wrong;
  for (auto& [id, operations] : by_id) {
    std::stable_sort(operations.begin(), operations.end(),
                     [](const Operation* a, const Operation* b) { return a->begin < b->begin; });
    CheckWhole(operations, wrong);
    CheckDeleted(operations, wrong);
    CheckOne(operations, wrong);
    CheckRefused(operations, wrong);
    CheckKept(operations, wrong);
    CheckListed(operations, wrong);
    if (!complete_) continue;
    CheckOwn(operations, wrong);
    CheckFree(operations, wrong);
    CheckTwo(operations, wrong);
    CheckSeen(operations, wrong);
    CheckFound(operations, wrong);
  }
  return wrong;
}

void History::CheckWhole(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* read : operations) {
    if (!IsRead(*read)) continue;
    const Operation* put = PutOf(operations, read->content);
    if (put == nullptr) wrong.push_back(absl::StrCat("never put: ", Words(*read)));
    if (put != nullptr && put->begin > read->end) {
      wrong.push_back(absl::StrCat("read before it was put: ", Words(*read), "; ", Words(*put)));
    }
  }
}

void History::CheckDeleted(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* put : operations) {
    if (put->kind != Kind::kPut) continue;
    const int64_t visible = VisibleFrom(operations, *put);
    for (const Operation* end : operations) {
      if (end->kind != Kind::kDelete || end->outcome != Outcome::kOk) continue;
      const bool own = end->node == put->node && put->outcome == Outcome::kOk && put->end < end->begin;
      if (visible >= end->begin && !own) continue;
      for (const Operation* read : operations) {
        if (IsRead(*read) && read->content == put->content && read->begin > end->end &&
            !MayNotBeKnownTo(operations, *end, *put, *read)) {
          wrong.push_back(absl::StrCat("deleted: ", Words(*end), ", then ", Words(*read), "; ", Words(*put)));
          break;
        }
      }
    }
  }
}

void History::CheckOne(const Operations& operations, std::vector<std::string>& wrong) const {
  // By content, the first end and last begin of reads off its creator's node.
  struct Seen {
    const Operation* first = nullptr;
    const Operation* last = nullptr;
  };
  std::map<uint64_t, Seen> seen;
  for (const Operation* read : operations) {
    if (!IsRead(*read)) continue;
    const Operation* put = PutOf(operations, read->content);
    if (put == nullptr || put->node == read->node || InOutage(put->end)) continue;
    Seen& of = seen[read->content];
    if (of.first == nullptr || read->end < of.first->end) of.first = read;
    if (of.last == nullptr || read->begin > of.last->begin) of.last = read;
  }
  for (const auto& [a, of_a] : seen) {
    for (const auto& [b, of_b] : seen) {
      if (a == b) continue;
      // A node saw a, then b, then a again.
      for (const Operation* read : operations) {
        if (!IsRead(*read) || read->content != b || read->node == PutOf(operations, b)->node) continue;
        if (of_a.first->end >= read->begin || read->end >= of_a.last->begin) continue;
        if (MayComeBack(operations, *PutOf(operations, a), of_a.last->end)) continue;
        if (MayComeBack(operations, *PutOf(operations, b), read->end)) continue;  // and is dropped again
        if (WasLost(*PutOf(operations, a), of_a.last->begin)) continue;           // given up, and back
        wrong.push_back(
            absl::StrCat("one content: ", Words(*of_a.first), ", then ", Words(*read), ", then ", Words(*of_a.last)));
        break;
      }
    }
  }
}

void History::CheckRefused(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* put : operations) {
    if (put->kind != Kind::kPut || put->outcome != Outcome::kRefused || put->content == 0) continue;
    if (complete_ && (MayHaveBeenUnknown(*put, put->end) || WasLost(*put, put->end))) {
      continue;  // accepted once, then displaced
    }
    for (const Operation* read : operations) {
      if (!IsRead(*read) || read->content != put->content) continue;
      if (read->begin > put->end || (read->node != put->node && !InOutage(put->end))) {
        wrong.push_back(absl::StrCat("refused: ", Words(*put), ", but ", Words(*read)));
        break;
      }
    }
  }
}

void History::CheckKept(const Operations& operations, std::vector<std::string>& wrong) const {
  uint64_t agreed = 0;
  const Operation* first_last = nullptr;
  bool all_nothing = true;
  for (const Operation* read : operations) {
    if (!read->last) continue;
    if (read->outcome != Outcome::kOk && read->outcome != Outcome::kNothing) {
      wrong.push_back(absl::StrCat("no answer at the end: ", Words(*read)));
      continue;
    }
    const uint64_t content = read->outcome == Outcome::kOk ? read->content : 0;
    if (first_last == nullptr) {
      first_last = read;
      agreed = content;
    } else if (content != agreed) {
      wrong.push_back(absl::StrCat("no agreement at the end: ", Words(*first_last), ", ", Words(*read)));
    }
    all_nothing = all_nothing && content == 0;
  }
  if (first_last == nullptr) return;
  for (const Operation* put : operations) {
    if (complete_ && agreed != put->content && StandsUntil(operations, *put, first_last->begin)) {
      wrong.push_back(absl::StrCat("not kept: ", Words(*put), ", and at the end ", Words(*first_last)));
      return;
    }
  }
  if (!all_nothing) return;
  for (const Operation* put : operations) {
    if (put->kind != Kind::kPut || put->outcome != Outcome::kOk || WasLost(*put, kNever)) continue;
    // A deletion under way or later may have taken it, or a content that won its id.
    const bool other = std::any_of(operations.begin(), operations.end(), [put](const Operation* o) {
      if (o->kind == Kind::kDelete) return o->outcome == Outcome::kUnknown || o->end >= put->begin;
      return o->kind == Kind::kPut && o != put && o->outcome != Outcome::kFailed;
    });
    if (!other) wrong.push_back(absl::StrCat("not kept: ", Words(*put), ", and at the end ", Words(*first_last)));
  }
}

void History::CheckListed(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* operation : operations) {
    if (operation->outcome == Outcome::kWrong) wrong.push_back(absl::StrCat("not listed: ", Words(*operation)));
  }
}

// True if put while the directory was about to forget or learned older contents, or on a node
// unknown to it.
bool History::MayNotBeKnownAgain(const Outage& outage, const Operation& put) {
  if (put.begin > outage.end) return false;
  return put.end >= outage.begin || outage.cut_off.count(put.node) != 0;
}

// True if the content of `put` keeps the id until then: not deleted, not lost, and known again to a
// directory that forgot.
bool History::StandsUntil(const Operations& operations, const Operation& put, int64_t until) const {
  if (put.kind != Kind::kPut || put.outcome != Outcome::kOk || put.end > until || WasLost(put, until)) return false;
  if (std::any_of(outages_.begin(), outages_.end(),
                  [&](const Outage& o) { return o.begin <= until && MayNotBeKnownAgain(o, put); })) {
    return false;
  }
  if (MayBeDisplaced(operations, put, until)) return false;
  return std::none_of(operations.begin(), operations.end(),
                      [&](const Operation* o) { return MayAct(*o, put.begin, until); });
}

// True if an older content, from a node cut off while the directory forgot, may take the id of one
// put before that node announced all again.
bool History::MayBeDisplaced(const Operations& operations, const Operation& put, int64_t until) const {
  return std::any_of(outages_.begin(), outages_.end(), [&](const Outage& outage) {
    if (outage.forgot > until || outage.cut_off.empty()) return false;
    return std::any_of(operations.begin(), operations.end(), [&](const Operation* o) {
      const bool has_it = o->kind == Kind::kPut || IsRead(*o);
      return has_it && o->content != put.content && o->begin < put.end && outage.cut_off.count(o->node) != 0;
    });
  });
}

void History::CheckOwn(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* read : operations) {
    if (read->kind != Kind::kGet || (read->outcome != Outcome::kOk && read->outcome != Outcome::kNothing)) continue;
    for (const Operation* put : operations) {
      if (put->node != read->node || put->content == read->content || put->end >= read->begin) continue;
      const Leaving* const leaving = LeavingAfter(*put);
      if (leaving != nullptr && leaving->begin <= read->end) continue;  // it is elsewhere
      if (StandsUntil(operations, *put, read->end)) {
        wrong.push_back(absl::StrCat("own: ", Words(*put), ", then ", Words(*read)));
      }
    }
  }
}

// True if `other` may be why `put` is refused.
bool History::MayHaveTheId(const Operations& operations, const Operation& other, const Operation& put) const {
  if (other.kind != Kind::kPut || &other == &put || other.begin > put.end) return false;
  if (other.outcome == Outcome::kRefused) return other.end >= put.begin;
  if (other.outcome == Outcome::kFailed) return !IsWithdrawn(other, put.begin);
  if (other.outcome != Outcome::kOk || MayComeBack(operations, other, put.end)) return true;
  const int64_t visible = VisibleFrom(operations, other);
  return std::none_of(operations.begin(), operations.end(), [&](const Operation* o) {
    if (o->kind != Kind::kDelete || o->outcome != Outcome::kOk || o->end >= put.begin) return false;
    if (WasLost(other, o->end) || MayHaveBeenUnknown(other, o->end)) return false;  // the deletion meant another
    return visible < o->begin || (o->node == other.node && other.end < o->begin);
  });
}

void History::CheckFree(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* put : operations) {
    if (put->kind != Kind::kPut || put->outcome != Outcome::kRefused || InOutage(put->end)) continue;
    const bool any = std::any_of(operations.begin(), operations.end(),
                                 [&](const Operation* other) { return MayHaveTheId(operations, *other, *put); });
    if (!any) wrong.push_back(absl::StrCat("free: no other content had the id of ", Words(*put)));
  }
}

void History::CheckTwo(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* first : operations) {
    if (first->kind != Kind::kPut || !first->confirmed) continue;
    for (const Operation* second : operations) {
      if (second->kind != Kind::kPut || !second->confirmed || second->outcome != Outcome::kOk) continue;
      if (InOutage(second->begin) || InOutage(second->end)) continue;  // the second is dropped
      if (second->begin > first->end && StandsUntil(operations, *first, second->end)) {
        wrong.push_back(absl::StrCat("two: ", Words(*first), ", and ", Words(*second)));
      }
    }
  }
}

void History::CheckSeen(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* read : operations) {
    if (read->kind != Kind::kGet || read->outcome != Outcome::kNothing || read->end - read->begin < patience_) continue;
    for (const Operation* put : operations) {
      if (put->kind != Kind::kPut || !put->confirmed || put->end >= read->begin) continue;
      if (StandsUntil(operations, *put, read->end)) {
        wrong.push_back(absl::StrCat("seen: ", Words(*put), ", then ", Words(*read)));
      }
    }
  }
}

// True if a directory that had forgotten may not have known it then.
bool History::MayHaveBeenUnknown(const Operation& put, int64_t when) const {
  return std::any_of(outages_.begin(), outages_.end(),
                     [&](const Outage& outage) { return outage.forgot <= when && MayNotBeKnownAgain(outage, put); });
}

// True if its failure has been reported by then.
bool History::IsWithdrawn(const Operation& put, int64_t when) const {
  return std::any_of(told_.begin(), told_.end(), [&](const Told& told) {
    return told.node == put.node && told.when >= put.end && told.when <= when;
  });
}

void History::CheckFound(const Operations& operations, std::vector<std::string>& wrong) const {
  for (const Operation* deletion : operations) {
    if (deletion->kind != Kind::kDelete || deletion->outcome != Outcome::kNothing) continue;
    for (const Operation* put : operations) {
      if (put->kind != Kind::kPut || !put->confirmed || put->end >= deletion->begin) continue;
      if (StandsUntil(operations, *put, deletion->end)) {
        wrong.push_back(absl::StrCat("found: ", Words(*put), ", then ", Words(*deletion)));
      }
    }
  }
}

const History::Leaving* History::LeavingAfter(const Operation& put) const {
  for (const Leaving& leaving : leavings_) {
    if (leaving.node == put.node && put.begin <= leaving.when) return &leaving;
  }
  return nullptr;
}

bool History::WasLost(const Operation& put, int64_t until) const {
  const Leaving* const leaving = LeavingAfter(put);
  return std::any_of(losses_.begin(), losses_.end(), [&](const Loss& loss) {
    if (loss.when < put.begin || loss.when > until) return false;
    if (leaving == nullptr || loss.when <= leaving->begin) return loss.node == put.node;
    return loss.node != put.node || loss.when <= leaving->when;
  });
}

bool History::InOutage(int64_t time) const {
  return std::any_of(outages_.begin(), outages_.end(),
                     [time](const Outage& outage) { return outage.begin <= time && time <= outage.end; });
}

// A node cut off while the directory forgets comes back to one without earlier deletions.
bool History::MayComeBack(const Operations& operations, const Operation& put, int64_t until) const {
  return std::any_of(outages_.begin(), outages_.end(), [&](const Outage& outage) {
    if (put.begin > outage.forgot || until < outage.forgot) return false;
    return std::any_of(operations.begin(), operations.end(), [&](const Operation* o) {
      const bool has_it = o == &put || (IsRead(*o) && o->content == put.content);
      return has_it && outage.cut_off.count(o->node) != 0;
    });
  });
}

// A learning directory may accept a new content: a deletion means that one, or the older one
// displaces it and is dropped soon after.
bool History::MayNotBeKnownTo(const Operations& operations, const Operation& deletion, const Operation& put,
                              const Operation& read) const {
  if (MayComeBack(operations, put, read.end)) return true;
  // A node given up has its contents forgotten: the deletion meant what was put since.
  const bool replaced = std::any_of(operations.begin(), operations.end(), [&](const Operation* o) {
    return o->kind == Kind::kPut && o->begin > put.begin && o->begin <= deletion.end;
  });
  if (replaced && WasLost(put, deletion.end)) return true;
  return std::any_of(outages_.begin(), outages_.end(), [&](const Outage& outage) {
    if (outage.cut_off.count(read.node) != 0 && put.begin <= outage.forgot && deletion.end >= outage.forgot)
      return true;
    if (put.begin > outage.end || deletion.end < outage.forgot || deletion.begin > outage.end) return false;
    return std::any_of(operations.begin(), operations.end(), [&](const Operation* o) {
      return o->kind == Kind::kPut && outage.begin <= o->begin && o->begin <= std::min(outage.end, deletion.end);
    });
  });
}

}  // namespace tokamak::sim

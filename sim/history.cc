#include "sim/history.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tokamak::sim {

namespace {

using Kind = Operation::Kind;
using Outcome = Operation::Outcome;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

bool IsRead(const Operation& operation) { return operation.kind == Kind::kGet && operation.outcome == Outcome::kOk; }

std::string Words(const Operation& operation) {
  static constexpr const char* kKinds[] = {"put", "get", "delete"};
  static constexpr const char* kOutcomes[] = {"unknown", "ok", "nothing", "refused", "failed"};
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

// From when on a content counts as visible.
int64_t VisibleFrom(const std::vector<const Operation*>& operations, const Operation& put) {
  int64_t from = kNever;
  if (put.confirmed && put.outcome == Outcome::kOk) from = put.end;
  for (const Operation* read : operations) {
    if (IsRead(*read) && read->content == put.content && read->node != put.node) from = std::min(from, read->end);
  }
  return from;
}

}  // namespace

std::string History::Describe(const std::string& id) const {
  std::string text;
  for (const Operation& operation : operations_) {
    if (operation.id == id) absl::StrAppend(&text, Words(operation), "\n");
  }
  for (const Loss& loss : losses_) absl::StrAppend(&text, "n", loss.node, " lost its memory at ", loss.when, "\n");
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
      if (MayNotBeKnownTo(*end, *put)) continue;
      for (const Operation* read : operations) {
        if (IsRead(*read) && read->content == put->content && read->begin > end->end) {
          wrong.push_back(absl::StrCat("deleted: ", Words(*end), ", then ", Words(*read), "; ", Words(*put)));
          break;
        }
      }
    }
  }
}

void History::CheckOne(const Operations& operations, std::vector<std::string>& wrong) const {
  // Of each content: the first end and the last begin of a read that its creator's node did not do.
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
      // a was seen, then b, then a again.
      for (const Operation* read : operations) {
        if (!IsRead(*read) || read->content != b || read->node == PutOf(operations, b)->node) continue;
        if (of_a.first->end >= read->begin || read->end >= of_a.last->begin) continue;
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
  if (first_last == nullptr || !all_nothing) return;
  for (const Operation* put : operations) {
    if (put->kind != Kind::kPut || put->outcome != Outcome::kOk || WasLost(*put)) continue;
    // A deletion that was under way, or came later, may have taken it; so may another content that won its id.
    const bool other = std::any_of(operations.begin(), operations.end(), [put](const Operation* o) {
      if (o->kind == Kind::kDelete) return o->outcome == Outcome::kUnknown || o->end >= put->begin;
      return o->kind == Kind::kPut && o != put && o->outcome != Outcome::kFailed;
    });
    if (!other) wrong.push_back(absl::StrCat("not kept: ", Words(*put), ", and at the end ", Words(*first_last)));
  }
}

bool History::WasLost(const Operation& put) const {
  return std::any_of(losses_.begin(), losses_.end(),
                     [&put](const Loss& loss) { return loss.node == put.node && loss.when >= put.begin; });
}

bool History::InOutage(int64_t time) const {
  return std::any_of(outages_.begin(), outages_.end(),
                     [time](const Outage& outage) { return outage.begin <= time && time <= outage.end; });
}

bool History::MayNotBeKnownTo(const Operation& deletion, const Operation& put) const {
  return std::any_of(outages_.begin(), outages_.end(), [&](const Outage& outage) {
    return put.begin <= outage.forgot && deletion.end >= outage.forgot && deletion.begin <= outage.end;
  });
}

}  // namespace tokamak::sim

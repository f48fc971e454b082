#include "lib/store/waits.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "lib/base/check.h"
#include "lib/store/store.h"

namespace tokamak::store {

class Waits::Waiting final : public base::Handle, public Listed {
 public:
  // Pins what it finds as an owner of its own until it answers: a Release by `who`, too early or
  // one too many, cannot take a pin away.
  Waiting(Waits& waits, uint64_t number, absl::Span<const base::ObjectId> ids, size_t needed, std::optional<Owner> who,
          GetCallback callback)
      : waits_(waits),
        waits_gone_(waits.lifetime_.Watched()),
        number_(number),
        needed_(needed),
        who_(who),
        hold_(waits.store_.NewOwner()),
        callback_(std::move(callback)) {
    entries_.reserve(ids.size());
    for (const base::ObjectId& id : ids) entries_.push_back({id, std::nullopt, absl::OkStatus()});
    waits_.waiting_.PushBack(this);
  }

  ~Waiting() override { Cancel(); }

  void Begin(base::Time deadline) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!Look(i)) waits_.lacking_.emplace(Place{entries_[i].id, number_, i}, this);
    }
    timer_ = found_ >= needed_ ? waits_.loop_.Post([this] { Finish(); })
                               : waits_.loop_.RunAt(deadline, [this] { Finish(); });
  }

  void Appeared(size_t index) {
    CHECK(Look(index));
    if (found_ == needed_) timer_ = waits_.loop_.Post([this] { Finish(); });
  }

  void Cancel() {
    if (waits_gone_.over() || !List::Listed(this)) return;
    for (const GetEntry& entry : entries_) {
      if (who_.has_value() && entry.location.has_value()) CHECK(waits_.store_.Release(entry.id, hold_).ok());
    }
    Forget();
  }

  std::optional<Owner> who() const { return who_; }

 private:
  using Entries = absl::InlinedVector<GetEntry, kFewObjects>;

  bool Look(size_t index) {
    GetEntry& entry = entries_[index];
    Store& store = waits_.store_;
    entry.location = who_.has_value() ? store.AcquireIfHere(entry.id, hold_) : store.Find(entry.id);
    if (!entry.location.has_value()) return false;
    ++found_;
    return true;
  }

  void Finish() {
    if (waits_gone_.over()) return;
    Forget();
    if (who_.has_value()) PassPins();
    const GetCallback callback = std::move(callback_);
    const Entries entries = std::move(entries_);
    callback(entries);  // may destroy this
  }

  void PassPins() {
    for (GetEntry& entry : entries_) {
      if (!entry.location.has_value()) continue;
      entry.refused = waits_.store_.PassPin(entry.id, hold_, *who_);
      if (entry.refused.ok()) continue;
      CHECK(waits_.store_.Release(entry.id, hold_).ok());
      entry.location = std::nullopt;
    }
  }

  void Forget() {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].location.has_value()) waits_.lacking_.erase(Place{entries_[i].id, number_, i});
    }
    waits_.waiting_.Remove(this);
    timer_.Cancel();
  }

  Waits& waits_;
  const base::Lifetime::Watch waits_gone_;
  const uint64_t number_;
  const size_t needed_;
  const std::optional<Owner> who_;
  const Owner hold_;
  GetCallback callback_;
  Entries entries_;
  size_t found_ = 0;
  base::Timer timer_;
};

base::Pending Waits::Get(absl::Span<const base::ObjectId> ids, base::Time deadline, Owner who, GetCallback callback) {
  return Start(ids, ids.size(), deadline, who, std::move(callback));
}

base::Pending Waits::Wait(absl::Span<const base::ObjectId> ids, size_t count, base::Time deadline,
                          WaitCallback callback) {
  auto to_flags = [callback = std::move(callback)](absl::Span<const GetEntry> entries) {
    std::vector<bool> sealed;
    for (const GetEntry& entry : entries) sealed.push_back(entry.location.has_value());
    callback(std::move(sealed));
  };
  return Start(ids, std::min(count, ids.size()), deadline, std::nullopt, std::move(to_flags));
}

base::Pending Waits::Start(absl::Span<const base::ObjectId> ids, size_t needed, base::Time deadline,
                           std::optional<Owner> who, GetCallback callback) {
  auto waiting = std::make_unique<Waiting>(*this, next_number_++, ids, needed, who, std::move(callback));
  waiting->Begin(deadline);
  return waiting;
}

void Waits::Sealed(const base::ObjectId& id) {
  absl::InlinedVector<std::pair<Waiting*, size_t>, kFewObjects> served;
  const auto first = lacking_.lower_bound(Place{id, 0, 0});
  auto last = first;
  for (; last != lacking_.end() && std::get<0>(last->first) == id; ++last) {
    served.emplace_back(last->second, std::get<2>(last->first));
  }
  lacking_.erase(first, last);
  for (const auto& [waiting, index] : served) waiting->Appeared(index);
}

void Waits::DropOwner(Owner who) {
  for (Listed* next = waiting_.first(); next != nullptr;) {
    Waiting& one = static_cast<Waiting&>(*std::exchange(next, List::Next(next)));
    if (one.who() == who) one.Cancel();
  }
}

}  // namespace tokamak::store

#include "lib/node/membership.h"

#include <utility>
#include <vector>

#include "glog/logging.h"

namespace tokamak::node {

Membership::Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory,
                       directory::NodeInfo self, const MembershipOptions& options)
    : loop_(loop),
      store_(store),
      directory_(directory),
      self_info_(std::move(self)),
      options_(options),
      alive_(std::make_shared<Membership*>(this)) {
  subscription_ = store_.Subscribe([this](absl::Span<const store::Event> events) { Mark(events); });
}

Membership::~Membership() { *alive_ = nullptr; }

void Membership::Start(StatusCallback joined) {
  on_first_answer_ = std::move(joined);
  Renew();
}

void Membership::Leave(StatusCallback left) {
  leaving_ = true;
  joined_ = false;
  renew_timer_.Cancel();
  retry_timer_.Cancel();
  directory_.Leave(self_info_.id, self_info_.incarnation, options_.directory_deadline, std::move(left));
}

void Membership::Renew() {
  renewing_ = true;
  directory_.Join(self_info_, options_.lease, options_.directory_deadline,
                  [alive = alive_](const absl::StatusOr<directory::JoinResult>& result) {
                    if (*alive != nullptr) (*alive)->Renewed(result);
                  });
}

void Membership::Renewed(const absl::StatusOr<directory::JoinResult>& result) {
  renewing_ = false;
  if (leaving_) return;
  if (result.ok()) {
    ++counters_.renewals;
    LOG_IF(INFO, !joined_ || unanswered_) << self_info_.id << " is in the directory";
    joined_ = true;
    if (*result == directory::JoinResult::kEntered || unanswered_) {
      unanswered_ = false;
      ++counters_.re_announcements;
      sweeping_ = true;
      swept_to_.reset();
    }
    Flush();
  } else {
    ++counters_.failed_renewals;
    LOG_IF(WARNING, !unanswered_) << "the directory does not take this node's lease: " << result.status();
    unanswered_ = true;
  }
  renew_timer_ = loop_.RunAfter(result.ok() ? options_.renew : options_.retry, [this] { Renew(); });
  if (const auto first = std::exchange(on_first_answer_, nullptr)) first(result.status());  // may drop us
}

void Membership::Mark(absl::Span<const store::Event> events) {
  for (const store::Event& event : events) dirty_.insert(event.id);
  Flush();
}

void Membership::Recheck(const base::ObjectId& id) {
  if (dirty_.size() >= kMaxRechecks) return;
  dirty_.insert(id);
  Flush();
}

void Membership::Flush() {
  if (!joined_ || retry_timer_.armed()) return;
  if (sweeping_ && dirty_.size() < options_.max_updates_in_flight) MarkNextPage();
  auto next = dirty_.begin();
  while (next != dirty_.end() && in_flight_.size() < options_.max_updates_in_flight) {
    if (in_flight_.count(*next) != 0) {
      ++next;
      continue;
    }
    const base::ObjectId id = *next;
    next = dirty_.erase(next);
    Update(id);
  }
}

// Never empty but at the end, so that there is always something in flight whose end calls for the next page.
void Membership::MarkNextPage() {
  const size_t dirty_before = dirty_.size();
  while (sweeping_ && dirty_.size() == dirty_before) {
    const std::vector<store::ObjectInfo> page = store_.List(options_.max_updates_in_flight, swept_to_);
    for (const store::ObjectInfo& object : page) {
      if (object.state == store::State::kSealed) dirty_.insert(object.id);
    }
    sweeping_ = !page.empty();
    if (sweeping_) swept_to_ = page.back().id;
  }
}

// Says what is true now: the object is here, or it is not.
void Membership::Update(const base::ObjectId& id) {
  in_flight_.insert(id);
  const absl::optional<store::Location> place = store_.Find(id);
  const bool here = place.has_value();
  auto done = [alive = alive_, id, here](const absl::Status& status) {
    if (*alive != nullptr) (*alive)->Updated(id, here, status);
  };
  if (here) {
    directory_.Announce(id, place->data_size, place->metadata_size, self_info_.id, options_.directory_deadline, done);
  } else {
    directory_.Withdraw(id, self_info_.id, options_.directory_deadline, done);
  }
}

void Membership::Updated(const base::ObjectId& id, bool announced, const absl::Status& status) {
  in_flight_.erase(id);
  if (leaving_) return;
  if (status.ok()) {
    ++(announced ? counters_.announced : counters_.withdrawn);
    return Flush();
  }
  if (absl::IsInvalidArgument(status)) {
    ++counters_.refused;
    LOG_EVERY_N(WARNING, 100) << "object " << id.ToHex() << " stays unknown to other nodes: " << status.message();
    return Flush();
  }
  dirty_.insert(id);
  retry_timer_ = loop_.RunAfter(options_.retry, [this] { Flush(); });
  if (!absl::IsNotFound(status)) return;
  // A directory that does not know us has lost our lease: joining again announces everything.
  joined_ = false;
  if (!renewing_) renew_timer_ = loop_.Post([this] { Renew(); });
}

}  // namespace tokamak::node

#include "lib/node/membership.h"

#include <utility>

#include "absl/types/optional.h"
#include "glog/logging.h"

namespace tokamak::node {

namespace {
constexpr size_t kListPage = 1024;
}

Membership::Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory,
                       directory::NodeInfo self, const MembershipOptions& options)
    : loop_(loop),
      store_(store),
      directory_(directory),
      self_(std::move(self)),
      options_(options),
      alive_(std::make_shared<Membership*>(this)) {
  subscription_ = store_.Subscribe([this](absl::Span<const store::Event> events) { Mark(events); });
}

Membership::~Membership() { *alive_ = nullptr; }

void Membership::Start(std::function<void(const absl::Status&)> joined) {
  on_first_answer_ = std::move(joined);
  Renew();
}

void Membership::Leave(std::function<void(const absl::Status&)> left) {
  leaving_ = true;
  joined_ = false;
  renew_timer_.Cancel();
  retry_timer_.Cancel();
  directory_.Leave(self_.id, self_.incarnation, options_.directory_deadline, std::move(left));
}

void Membership::Renew() {
  directory_.Join(self_, options_.lease, options_.directory_deadline,
                  [alive = alive_](absl::StatusOr<directory::JoinResult> result) {
                    if (*alive != nullptr) (*alive)->Renewed(std::move(result));
                  });
}

void Membership::Renewed(absl::StatusOr<directory::JoinResult> result) {
  if (leaving_) return;
  if (result.ok()) {
    ++counters_.renewals;
    if (!joined_) LOG(INFO) << self_.id << " is in the directory";
    joined_ = true;
    if (*result == directory::JoinResult::kEntered) MarkAll();
    Flush();
  } else {
    ++counters_.failed_renewals;
    LOG_EVERY_N(WARNING, 10) << "the directory does not take this node's lease: " << result.status();
  }
  renew_timer_ = loop_.RunAfter(result.ok() ? options_.renew : options_.retry, [this] { Renew(); });
  if (const auto first = std::exchange(on_first_answer_, nullptr)) first(result.status());
}

void Membership::MarkAll() {
  ++counters_.re_announcements;
  absl::optional<base::ObjectId> after;
  while (true) {
    const std::vector<store::ObjectInfo> page = store_.List(kListPage, after);
    for (const store::ObjectInfo& object : page) {
      if (object.state == store::State::kSealed) dirty_.insert(object.id);
    }
    if (page.size() < kListPage) return;
    after = page.back().id;
  }
}

void Membership::Mark(absl::Span<const store::Event> events) {
  for (const store::Event& event : events) dirty_.insert(event.id);
  Flush();
}

void Membership::Flush() {
  if (!joined_ || retry_timer_.armed()) return;
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

// Says what is true now: the object is here, or it is not.
void Membership::Update(const base::ObjectId& id) {
  in_flight_.insert(id);
  const absl::StatusOr<store::Location> place = store_.Find(id);
  const bool here = place.ok();
  auto done = [alive = alive_, id, here](const absl::Status& status) {
    if (*alive != nullptr) (*alive)->Updated(id, here, status);
  };
  if (here) {
    directory_.Announce(id, place->data_size, place->metadata_size, self_.id, options_.directory_deadline, done);
  } else {
    directory_.Withdraw(id, self_.id, options_.directory_deadline, done);
  }
}

void Membership::Updated(const base::ObjectId& id, bool announced, const absl::Status& status) {
  in_flight_.erase(id);
  if (leaving_) return;
  if (status.ok()) {
    ++(announced ? counters_.announced : counters_.withdrawn);
  } else if (absl::IsInvalidArgument(status)) {
    LOG(WARNING) << "object " << id.ToHex() << " stays unknown to other nodes: " << status.message();
  } else {
    // A directory that does not know us has lost our lease: join again first, which announces everything.
    dirty_.insert(id);
    if (absl::IsNotFound(status)) joined_ = false;
    if (absl::IsNotFound(status)) renew_timer_ = loop_.Post([this] { Renew(); });
    retry_timer_ = loop_.RunAfter(options_.retry, [this] { Flush(); });
    return;
  }
  Flush();
}

}  // namespace tokamak::node

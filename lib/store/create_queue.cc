#include "lib/store/create_queue.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/store/store.h"

namespace tokamak::store {

class CreateQueue::Waiting final : public base::Handle, public Listed {
 public:
  Waiting(CreateQueue& queue, const CreateRequest& request, base::Time deadline, CreateCallback callback)
      : request_(request), queue_(queue), queue_gone_(queue.lifetime_.Watched()), callback_(std::move(callback)) {
    timer_ = queue.loop_.RunAt(deadline, [this] { GiveUp(); });
  }

  ~Waiting() override { Cancel(); }

  void Cancel() {
    if (queue_gone_.over() || !List::Listed(this)) return;
    queue_.Remove(*this);
    timer_.Cancel();
  }

  // May destroy this, others and the store.
  void End(absl::StatusOr<Location> location) {
    Cancel();
    const CreateCallback callback = std::move(callback_);
    callback(std::move(location));
  }

  const CreateRequest& request() const { return request_; }

 private:
  void GiveUp() {
    if (queue_gone_.over()) return;
    Cancel();
    End(queue_.store_.RefuseForRoom(request_.total_size()));
  }

  const CreateRequest request_;
  CreateQueue& queue_;
  const base::Lifetime::Watch queue_gone_;
  CreateCallback callback_;
  base::Timer timer_;
};

base::Pending CreateQueue::Add(const CreateRequest& request, base::Time deadline, CreateCallback callback) {
  if (absl::Status s = Check(request); !s.ok()) {
    return refusals_.Add([callback = std::move(callback), s = std::move(s)] { callback(s); });
  }
  auto waiting = std::make_unique<Waiting>(*this, request, deadline, std::move(callback));
  waiting_.PushBack(waiting.get());
  ++waiting_of_[request.who];
  ServeSoon();
  return waiting;
}

absl::Status CreateQueue::Check(const CreateRequest& request) const {
  const auto of_owner = waiting_of_.find(request.who);
  if (of_owner != waiting_of_.end() && of_owner->second >= kMaxWaitingCreates) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMaxWaitingCreates, " creates of one program wait for room already: wait for one of them"));
  }
  if (absl::Status s = store_.CheckCreate(request.id, request.place()); !s.ok()) return s;
  return store_.CheckQuota(request.who, request.total_size());
}

bool CreateQueue::MayOvertake(uint64_t size) const {
  if (waiting_.empty()) return true;
  const uint64_t most = static_cast<const Waiting*>(waiting_.first())->request().total_size();
  return overtaken_ <= most && size <= most - overtaken_;
}

void CreateQueue::DropOwner(Owner who) {
  for (Listed* next = waiting_.first(); next != nullptr;) {
    Waiting& one = static_cast<Waiting&>(*std::exchange(next, List::Next(next)));
    if (one.request().who == who) one.Cancel();
  }
}

void CreateQueue::ServeSoon() {
  if (!turn_.armed()) turn_ = loop_.RunAt(std::max(loop_.Now(), not_before_), [this] { Serve(); });
}

void CreateQueue::Serve() {
  const base::Lifetime::Watch gone = lifetime_.Watched();
  uint64_t too_large = UINT64_MAX;  // bytes
  int searches = 0;
  next_ = waiting_.first();
  while (next_ != nullptr && searches < kMaxSearches) {
    Waiting& one = static_cast<Waiting&>(*std::exchange(next_, List::Next(next_)));
    const bool first = &one == waiting_.first();
    const uint64_t size = one.request().total_size();
    if (size >= too_large || (!first && !MayOvertake(size))) continue;
    const CreateRequest& request = one.request();
    std::optional<absl::StatusOr<Location>> location;
    if (absl::Status s = store_.CheckQuota(request.who, size); !s.ok()) {
      location = std::move(s);
    } else {
      location = store_.InsertIfRoom(request.id, request.place(), Origin::kCreatedHere, request.who, request.name);
    }
    if (!location.has_value()) {
      too_large = size;
      ++searches;
      Pause();
      continue;
    }
    if (!first && location->ok()) Overtook(size);
    one.End(*std::move(location));
    if (gone.over()) return;
  }
  next_ = nullptr;
}

void CreateQueue::Pause() {
  const auto blocks = static_cast<int64_t>(store_.blocks());
  not_before_ = loop_.Now() + kPause * (1 + blocks / kBlocksPerPause);
}

void CreateQueue::Remove(Waiting& one) {
  if (next_ == &one) next_ = List::Next(next_);
  const bool first = &one == waiting_.first();
  waiting_.Remove(&one);
  if (first) overtaken_ = 0;
  const auto of_owner = waiting_of_.find(one.request().who);
  if (--of_owner->second == 0) waiting_of_.erase(of_owner);
  if (first) RoomAppeared();  // the others may be served
}

}  // namespace tokamak::store

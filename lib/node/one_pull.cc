#include "lib/node/one_pull.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::node {

namespace {

// What shows that the peer, and not only this object at it, is in trouble.
bool IsTroubleOfPeer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

}  // namespace

Pulls::WaiterHandle::~WaiterHandle() {
  if (pull_ != nullptr) pull_->DropWaiter(*this);
}

absl::Status Pulls::WaiterHandle::trouble() const { return pull_ == nullptr ? absl::OkStatus() : pull_->trouble(); }

void Pulls::WaiterHandle::Tell(const absl::Status& status) {
  pull_ = nullptr;
  const Callback done = std::move(done_);
  done(status);
}

Pulls::Pull::Pull(Pulls& pulls, const base::ObjectId& id)
    : pulls_(pulls), id_(id), number_(++pulls.last_number_), owner_(pulls.store_.NewOwner()) {}

Pulls::Pull::~Pull() {
  while (!waiters_.empty()) waiters_.PopFront()->Orphan();
  if (state_ != State::kMoving) return;
  CHECK(!engine_->open()) << "the engines' hosts must be dropped before the pulls: they still write to the store";
  GiveUpPlace();
}

std::unique_ptr<Pulls::Waiter> Pulls::Pull::AddWaiter(transport::Protocol protocol, Callback done) {
  if (protocol != transport::Protocol::kAuto) protocol_ = protocol;
  auto waiter = std::make_unique<WaiterHandle>(*this, std::move(done));
  waiters_.PushBack(waiter.get());
  return waiter;
}

void Pulls::Pull::DropWaiter(WaiterHandle& waiter) {
  waiters_.Remove(&waiter);
  if (!waiters_.empty() || state_ == State::kOver) return;
  if (state_ == State::kMoving) return engine_->Cancel(token_);  // ends in Moved
  Finish(absl::CancelledError("nobody waits for it any more"));
}

// The one place where the state changes; most states start their work here.
void Pulls::Pull::Enter(State state) {
  CHECK(state_ != State::kOver);
  Leave();
  state_ = state;
  switch (state) {
    case State::kLocating:
      return Locate();
    case State::kBackOff:
      return BackOff();
    case State::kRefreshing:
      return RefreshPeers();
    case State::kNew:
    case State::kQueued:
    case State::kMoving:
    case State::kOver:
      return;
  }
}

void Pulls::Pull::Leave() {
  timer_.Cancel();
  for (const directory::NodeId& holder : std::exchange(queued_for_, {})) pulls_.Dequeue(holder, *this);
}

// The first look is at once, so that "nobody has it" is known soon; the next ones wait for a holder to appear.
void Pulls::Pull::Locate() {
  tried_.clear();
  refreshed_ = false;
  const base::Duration wait = asked_ ? pulls_.options_.locate_wait : base::Duration();
  pulls_.directory_.Locate(id_, wait, wait + pulls_.options_.directory_deadline,
                           [self = weak_from_this()](absl::StatusOr<directory::ObjectInfo> info) {
                             if (const auto pull = self.lock()) pull->Located(std::move(info));
                           });
}

void Pulls::Pull::Located(absl::StatusOr<directory::ObjectInfo> info) {
  if (state_ != State::kLocating) return;
  if (IsHere()) return Finish(absl::OkStatus());
  if (info.ok()) {
    asked_ = true;
    info_ = *std::move(info);
    return TryNextHolder();
  }
  trouble_ = info.status();
  if (!absl::IsNotFound(trouble_)) return Enter(State::kBackOff);  // an outage is waited out
  asked_ = true;
  Enter(State::kLocating);
}

void Pulls::Pull::TryNextHolder() {
  if (IsHere()) return Finish(absl::OkStatus());
  const Choice choice = Choose();
  if (!choice.ready.empty()) return MoveFrom(choice.ready);
  if (choice.look_up && !refreshed_) return Enter(State::kRefreshing);
  if (!choice.busy.empty()) return Queue(choice.busy);
  if (trouble_.ok() || absl::IsNotFound(trouble_)) {
    trouble_ = absl::UnavailableError("no holder of the object can be reached now");
  }
  Enter(State::kBackOff);
}

// The least busy of those that are ready; chance decides between equals.
Pulls::Pull::Choice Pulls::Pull::Choose() {
  Choice choice;
  uint64_t best_rank = 0;
  for (const directory::NodeId& holder : info_.holders) {
    if (Tried(holder)) continue;
    if (holder == pulls_.self_) {  // the directory is wrong: it is not here
      tried_.push_back(holder);
      pulls_.recheck_(id_);
      continue;
    }
    const Peers::Peer* peer = pulls_.peers_.Find(holder);
    choice.look_up |= peer == nullptr || peer->suspect;
    const Peers::Use use = pulls_.peers_.UseOf(holder);
    if (use == Peers::Use::kBusy) choice.busy.push_back(holder);
    if (use != Peers::Use::kReady) continue;
    const uint64_t rank = (uint64_t{peer->pulls} << 32) + pulls_.random_.Below(uint64_t{1} << 32);
    if (choice.ready.empty() || rank < best_rank) {
      choice.ready = holder;
      best_rank = rank;
    }
  }
  return choice;
}

void Pulls::Pull::RefreshPeers() {
  refreshed_ = true;
  pulls_.peers_.Refresh([self = weak_from_this()](const absl::Status& status) {
    const auto pull = self.lock();
    if (pull == nullptr || pull->state_ != State::kRefreshing) return;
    if (!status.ok()) pull->trouble_ = status;
    pull->TryNextHolder();
  });
}

void Pulls::Pull::BackOff() {
  retry_delay_ = std::clamp(retry_delay_ * 2, pulls_.options_.first_retry, pulls_.options_.max_retry);
  timer_ = pulls_.loop_.RunAfter(retry_delay_, [this] { Enter(State::kLocating); });
}

void Pulls::Pull::Queue(const std::vector<directory::NodeId>& holders) {
  ++pulls_.counters_.queued;
  Enter(State::kQueued);
  queued_for_ = holders;
  for (const directory::NodeId& holder : holders) pulls_.Enqueue(holder, *this);
  timer_ = pulls_.loop_.RunAfter(pulls_.options_.max_queued, [this] { Enter(State::kLocating); });
}

void Pulls::Pull::TakeTurn() {
  CHECK(state_ == State::kQueued);
  Leave();
  TryNextHolder();
}

void Pulls::Pull::MoveFrom(const directory::NodeId& holder) {
  const auto place = pulls_.store_.CreateCopy({id_, base::DrawGeneration(pulls_.random_)}, info_.data_size,
                                              info_.metadata_size, owner_);
  if (!place.ok()) return NoPlace(place.status());
  CHECK(pulls_.store_.Pin(id_, owner_).ok());
  EngineLink::PullHandlers handlers;
  handlers.done = [self = weak_from_this()](const absl::Status& status, const transport::TransferReport& report) {
    if (const auto pull = self.lock()) pull->Moved(status, report);
  };
  engine_ = &pulls_.NextEngine();
  const auto token =
      engine_->Pull(RequestTo(*pulls_.peers_.Find(holder)), pulls_.store_.Memory(*place), std::move(handlers));
  if (!token.ok()) {
    GiveUpPlace();
    trouble_ = token.status();
    return Enter(State::kBackOff);
  }
  token_ = *token;
  holder_ = holder;
  if (!tried_.empty()) ++pulls_.counters_.next_holder;
  tried_.push_back(holder);
  pulls_.peers_.Begin(holder);
  Enter(State::kMoving);
}

transport::PullRequest Pulls::Pull::RequestTo(const Peers::Peer& peer) const {
  transport::PullRequest request;
  request.id = id_;
  request.owner = peer.engines[pulls_.next_engine_ % peer.engines.size()];
  request.size_known = true;
  request.size = {info_.data_size, info_.metadata_size};
  request.protocol = protocol_;
  request.deadline = pulls_.options_.attempt_deadline;
  request.patience = pulls_.options_.patience;
  return request;
}

void Pulls::Pull::NoPlace(const absl::Status& status) {
  trouble_ = status;
  // A program of this node is creating it, or an earlier object of this id is still read.
  if (absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status)) return Enter(State::kBackOff);
  if (!absl::IsResourceExhausted(status)) return Finish(status);
  const uint64_t whole = pulls_.store_.arena().size();
  if (info_.data_size > whole || info_.metadata_size > whole || info_.data_size + info_.metadata_size > whole) {
    return Finish(status);  // it says that this can never be
  }
  ++pulls_.counters_.waited_for_room;
  Enter(State::kBackOff);
}

void Pulls::Pull::Moved(const absl::Status& status, const transport::TransferReport& report) {
  CHECK(state_ == State::kMoving);
  const Peers::End end = status.ok()               ? Peers::End::kOk
                         : IsTroubleOfPeer(status) ? Peers::End::kFailed
                                                   : Peers::End::kOther;
  pulls_.peers_.Ended(holder_, end);
  pulls_.SlotFreed(holder_);
  if (status.ok()) return Arrived(report);
  GiveUpPlace();
  if (waiters_.empty()) return Finish(status);
  if (absl::IsCancelled(status)) {  // and then somebody came who wants it
    tried_.erase(std::find(tried_.begin(), tried_.end(), holder_));
    return TryNextHolder();
  }
  ++pulls_.counters_.failed_attempts;
  pulls_.counters_.stale_holders += absl::IsNotFound(status);
  const auto code = absl::IsNotFound(status) ? absl::StatusCode::kUnavailable : status.code();
  trouble_ = absl::Status(code, absl::StrCat("from ", holder_, ": ", status.message()));
  VLOG(1) << "pull of " << id_.ToHex() << " " << trouble_;
  TryNextHolder();
}

void Pulls::Pull::Arrived(const transport::TransferReport& report) {
  ++pulls_.counters_.pulled;
  ++pulls_.counters_.pulled_by[static_cast<size_t>(report.protocol)];
  pulls_.counters_.pulled_bytes += report.size.total();
  CHECK(pulls_.store_.Seal(id_, owner_).ok());
  CHECK(pulls_.store_.Release(id_, owner_).ok());
  Finish(absl::OkStatus());
}

void Pulls::Pull::GiveUpPlace() {
  CHECK(pulls_.store_.Abort(id_, owner_).ok());
  CHECK(pulls_.store_.Release(id_, owner_).ok());
}

void Pulls::Pull::Finish(const absl::Status& status) {
  Enter(State::kOver);
  const auto self = shared_from_this();
  pulls_.pulls_.erase(id_);
  while (!waiters_.empty()) waiters_.PopFront()->Tell(status);
}

}  // namespace tokamak::node

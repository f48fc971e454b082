#include "lib/node/pulls/object_pull.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/node/calls/object_messages.h"

namespace tokamak::node {

namespace {

// What shows that the peer, and not only this object at it, is in trouble.
bool IsTroubleOfPeer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) || absl::IsResourceExhausted(status);
}

// Of a node's engines, the first shares its control loop; the others carry bulk in turn. `turn` 0:
// not bulk.
size_t EngineOf(size_t engines, uint64_t turn) { return turn == 0 || engines == 1 ? 0 : 1 + turn % (engines - 1); }

Via ViaOf(transport::Protocol protocol) {
  switch (protocol) {
    case transport::Protocol::kRead:
      return Via::kRead;
    case transport::Protocol::kWrite:
      return Via::kWrite;
    case transport::Protocol::kEager:
    case transport::Protocol::kAuto:
      break;
  }
  return Via::kEager;
}

}  // namespace

ObjectPull::WaiterHandle::~WaiterHandle() {
  if (pull_ != nullptr) pull_->DropWaiter(*this);
}

void ObjectPull::WaiterHandle::Tell(const absl::Status& status) {
  via_ = pull_->via_;
  pull_ = nullptr;
  const PullTable::Callback done = std::move(done_);
  done(status);
}

ObjectPull::ObjectPull(PullTable& table, const base::ObjectId& id)
    : table_(table),
      services_(table.services_),
      id_(id),
      number_(++table.last_number_),
      owner_(services_.store.NewOwner()) {}

ObjectPull::~ObjectPull() {
  while (!waiters_.empty()) waiters_.PopFront()->Orphan();
  if (state_ == State::kLocating || state_ == State::kBackOff) --table_.looked_for_;
  CHECK(state_ != State::kMoving || !engine_->open())
      << "the engines' hosts must be dropped before the pulls: they still write to the store";
  GiveUpPlace();
}

std::unique_ptr<PullTable::Waiter> ObjectPull::AddWaiter(transport::Protocol protocol, base::Generation once,
                                                         PullTable::Callback done) {
  if (protocol != transport::Protocol::kAuto) protocol_ = protocol;
  auto waiter = std::make_unique<WaiterHandle>(*this, once, std::move(done));
  waiters_.PushBack(waiter.get());
  return waiter;
}

void ObjectPull::DropWaiter(WaiterHandle& waiter) {
  waiters_.Remove(&waiter);
  if (!waiters_.empty() || state_ == State::kOver) return;
  if (state_ == State::kMoving) return engine_->Cancel(token_);  // ends in Moved
  if (state_ == State::kRegistering) return;                     // it is here, for the next who wants it
  Finish(absl::CancelledError("nobody waits for it any more"));
}

// In any state but kMoving: nothing is under way, or not for them. Those who wait for generation
// `but` are left. False: nobody else waits, and the pull is over.
bool ObjectPull::TellWhoDoesNotWait(absl::StatusCode code, absl::string_view why, base::Generation but) {
  for (WaiterHandle* next = waiters_.first(); next != nullptr;) {
    WaiterHandle& one = *std::exchange(next, waiters_.Next(next));
    if (one.waits() || one.once() == but) continue;
    if (waiters_.size() == 1) {
      Finish(absl::Status(code, why));
      return false;
    }
    waiters_.Remove(&one);
    one.Tell(absl::Status(code, why));
  }
  return true;
}

// The one place where the state changes; most states start their work here.
void ObjectPull::Enter(State state) {
  CHECK(state_ != State::kOver);
  Leave();
  const auto is_looked_for = [](State one) { return one == State::kLocating || one == State::kBackOff; };
  if (is_looked_for(state_)) --table_.looked_for_;
  if (is_looked_for(state)) ++table_.looked_for_;
  state_ = state;
  switch (state) {
    case State::kLocating:
      Record(base::Phase::kDirectory);
      return Locate();
    case State::kHinted:
      Record(base::Phase::kRequest);
      return TryKnownPlace();
    case State::kBackOff:
      Record(base::Phase::kQueue);
      return BackOff();
    case State::kRefreshing:
      Record(base::Phase::kDirectory);
      return RefreshPeers();
    case State::kBundled:
      return Record(base::Phase::kRequest);
    case State::kQueued:
    case State::kMoving:  // the engine says more
      return Record(base::Phase::kQueue);
    case State::kRegistering:
      return Record(base::Phase::kConfirm);
    case State::kOver:
      return Record(base::Phase::kNotify);
    case State::kNew:
      return;
  }
}

void ObjectPull::Record(base::Phase phase) const {
  services_.trace.Record(
      {services_.loop.Now(), base::TraceKind::kPhase, services_.trace_node, static_cast<uint32_t>(phase), 0, number_});
}

void ObjectPull::Leave() {
  timer_.Cancel();
  refresh_.reset();
  vouching_.reset();
  for (const directory::NodeId& holder : std::exchange(queued_for_, {})) table_.Dequeue(holder, *this);
}

absl::Status ObjectPull::trouble() const {
  const bool is_looked_for = state_ == State::kLocating || state_ == State::kBackOff;
  const bool asks = is_looked_for && !answered_;
  return asks && (trouble_.ok() || services_.membership.directory_away()) ? services_.membership.WhyDirectoryIsSilent()
                                                                          : trouble_;
}

PullProgress ObjectPull::progress() const {
  if (!place_.has_value()) return {};
  return {moved_.load(std::memory_order_relaxed), info_.data_size + info_.metadata_size};
}

// ---- where it is

// The first look is at once, so that "nobody has it" is known soon; the next ones wait for a holder
// to appear.
void ObjectPull::Locate() {
  tried_.clear();
  refreshed_ = false;
  const bool away = services_.membership.directory_away();
  if (away || !place_used_) {  // a place that was told a moment ago needs no question first
    if (const directory::LocatedObject* known = KnownPlace(/*fresh=*/!away)) {
      Take(*known);
      return Enter(State::kHinted);
    }
  }
  if (locate_ == nullptr) AskDirectory(answered_ ? table_.options_.locate_wait : base::Duration());
  if (!answered_) timer_ = services_.loop.RunAt(patient_until_, [this] { TryAnyKnownPlace(); });
}

const directory::LocatedObject* ObjectPull::KnownPlace(bool fresh) const {
  const directory::LocatedObject* known =
      fresh ? services_.places.FindFresh(id_, services_.loop.Now()) : services_.places.Find(id_);
  return known == nullptr || services_.dropped.Contains({id_, known->generation}) ? nullptr : known;
}

// The directory is slow, or away without anybody having noticed.
void ObjectPull::TryAnyKnownPlace() {
  const directory::LocatedObject* known = KnownPlace(/*fresh=*/false);
  if (known == nullptr) return;
  Take(*known);
  Enter(State::kHinted);
}

// A small object is brought by its holder, which vouches for the copy: the directory is not asked.
// Else this node is entered as coming while the bytes are moving.
void ObjectPull::TryKnownPlace() {
  place_used_ = true;
  ++table_.counters_.from_cache;
  if (locate_ == nullptr && !asked_to_bring_ && IsSmall() && AskToBring()) return;
  if (locate_ == nullptr && !services_.membership.directory_away()) AskDirectory(base::Duration());
  timer_ = services_.loop.Post([this] { TryNextHolder(); });
}

// False: no holder can be asked now.
bool ObjectPull::AskToBring() {
  const Choice choice = Choose();
  if (choice.ready.empty()) return false;
  asked_to_bring_ = true;
  holder_ = choice.ready;
  timer_ = services_.loop.RunAfter(table_.options_.directory_patience, [this] { Enter(State::kLocating); });
  vouching_ = services_.objects.Call(
      services_.peers.Find(holder_)->engines.front(),
      EncodeRequest(BringRequest{version_, services_.engines.front()->address()}), table_.options_.directory_deadline,
      [this, asked = services_.loop.Now()](const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
        vouching_.reset();
        if (IsHere()) return Finish(absl::OkStatus());
        const auto brought = answer.ok() ? DecodeBringAnswer(*answer) : std::nullopt;
        const bool right = brought.has_value() && asked + brought->good_for > services_.loop.Now() &&
                           brought->data_size == info_.data_size && brought->metadata_size == info_.metadata_size;
        if (!right || services_.dropped.Contains(version_)) return Enter(State::kLocating);
        vouched_until_ = asked + brought->good_for;
        TakeContents(brought->contents);
      });
  return true;
}

bool ObjectPull::IsSmall() const {
  return protocol_ == transport::Protocol::kAuto && !place_.has_value() &&
         directory::IsSmallEnoughToBring(info_.data_size, info_.metadata_size);
}

void ObjectPull::AskDirectory(base::Duration wait) {
  withdrawn_.reset();
  patient_until_ = services_.loop.Now() + table_.options_.directory_patience;
  directory::LocateRequest request;
  request.id = id_;
  request.wait = wait;
  request.deadline = wait + table_.options_.directory_deadline;
  request.puller = services_.self;
  // Whoever asks for a protocol gets that, and what is moving already need not be brought.
  request.may_bring = state_ == State::kLocating && protocol_ == transport::Protocol::kAuto && !place_.has_value();
  locate_ = services_.directory.Locate(request, [this](const absl::StatusOr<directory::LocatedObject>& info) {
    locate_.reset();
    if (info.ok()) services_.places.Remember(id_, *info, services_.loop.Now());
    if (absl::IsUnavailable(info.status()) || absl::IsDeadlineExceeded(info.status())) {
      services_.membership.Suspect();
      services_.membership.Recheck({id_, base::kNoGeneration});  // this node may have been entered all the same
    }
    if (state_ == State::kLocating) return Located(info);
    Registered(info);
  });
}

void ObjectPull::Located(const absl::StatusOr<directory::LocatedObject>& info) {
  if (IsHere()) return Finish(absl::OkStatus());
  if (!info.ok()) {
    trouble_ = info.status();
    if (!absl::IsNotFound(trouble_)) return Enter(State::kBackOff);  // an outage is waited out
    answered_ = true;
    GiveUpPlace();  // nobody can bring the rest; a program may put it here again
    if (!TellWhoDoesNotWait(trouble_.code(), trouble_.message())) return;
    return Enter(State::kLocating);
  }
  answered_ = true;
  const base::ObjectVersion version{id_, info->generation};
  if (withdrawn_ == version) return AskDirectory(base::Duration());  // that took back what this answer entered
  if (services_.dropped.Contains(version)) {
    services_.copies.OnDeletedIsNamed(version);
    return Enter(State::kBackOff);
  }
  Take(*info);
  registered_ = true;
  if (absl::IsNotFound(trouble_)) trouble_ = absl::OkStatus();  // somebody has it now
  if (!TellWhoDoesNotWait(absl::StatusCode::kAlreadyExists, "another content has its id", version.generation)) return;
  if (info->contents.empty() || place_.has_value()) return TryNextHolder();
  holder_ = info_.holders.front();
  TakeContents(info->contents);
}

void ObjectPull::TakeContents(absl::Span<const uint8_t> contents) {
  if (absl::Status status = ReservePlace(); !status.ok()) return NoPlace(status);
  Record(base::Phase::kCopy);
  base::Copy(services_.loop, services_.store.Memory(*place_).data(), contents.data(), contents.size());
  ++table_.counters_.brought;
  report_ = transport::TransferReport();
  report_.protocol = transport::Protocol::kEager;
  report_.size = {info_.data_size, info_.metadata_size};
  via_ = Via::kBrought;
  SealHere();
}

// The answer of the directory comes while it is moving already, from a place that was known before.
void ObjectPull::Registered(const absl::StatusOr<directory::LocatedObject>& info) {
  const bool same = info.ok() && info->generation == version_.generation && withdrawn_ != version_;
  if (same) {
    answered_ = true;
    registered_ = !dropped_;
    info_.holders = info->holders;
    if (state_ == State::kRegistering) SealHere();
    return;
  }
  if (!info.ok()) trouble_ = info.status();
  if (!info.ok() && !absl::IsNotFound(info.status())) return NotRegistered();
  services_.places.Forget(id_);  // what was known is not true any more
  dropped_ = true;
  if (state_ == State::kMoving) return engine_->Cancel(token_);
  StartOver();
}

// The directory did not answer, and what is moving goes on: its holder may vouch for it.
void ObjectPull::NotRegistered() {
  if (state_ != State::kRegistering || vouching_ != nullptr) return;
  timer_.armed() ? AskToVouch() : StartOver();
}

void ObjectPull::Take(const directory::LocatedObject& info) {
  const base::ObjectVersion version{id_, info.generation};
  if (version != version_) {
    Unregister();
    GiveUpPlace();
  }
  version_ = version;
  dropped_ = false;
  info_ = info;
  info_.contents = {};
}

// It was entered as coming, and does not come any more.
void ObjectPull::Unregister() {
  if (std::exchange(registered_, false)) services_.membership.Recheck(version_);
}

void ObjectPull::OnWithdraw(const base::ObjectVersion& version) {
  if (locate_ != nullptr) withdrawn_ = version;
  if (version == version_) registered_ = false;
}

// What it is doing for this content ends; its waiters wait for another.
void ObjectPull::Drop(const base::ObjectVersion& version) {
  if (version != version_ || state_ == State::kOver || dropped_) return;
  ++table_.counters_.deleted;
  dropped_ = true;
  registered_ = false;
  trouble_ = absl::NotFoundError("the object was deleted");
  if (state_ == State::kMoving) return engine_->Cancel(token_);
  if (state_ == State::kLocating) return GiveUpPlace();
  StartOver();
}

// From any state but kMoving.
void ObjectPull::StartOver() {
  GiveUpPlace();
  if (waiters_.empty()) return Finish(absl::CancelledError("nobody waits for it any more"));
  Enter(State::kBackOff);
}

// ---- moving it

void ObjectPull::TryNextHolder() {
  if (IsHere()) return Finish(absl::OkStatus());
  const Choice choice = Choose();
  if (!choice.ready.empty()) return MayBeBundled() ? AskInBundle(choice.ready) : MoveFrom(choice.ready);
  if (choice.look_up && !refreshed_ && !services_.membership.directory_away()) return Enter(State::kRefreshing);
  if (!choice.busy.empty()) return Queue(choice.busy);
  Enter(State::kBackOff);
}

ObjectPull::Choice ObjectPull::Choose() {
  Choice choice;
  uint64_t best_rank = 0;
  for (const directory::NodeId& holder : info_.holders) {
    if (Tried(holder)) continue;
    if (holder == services_.self) {  // the directory is wrong: it is not here
      tried_.push_back(holder);
      services_.membership.Recheck(version_);
      continue;
    }
    const Peers::Peer* peer = services_.peers.Find(holder);
    choice.look_up |= peer == nullptr || peer->suspect;
    const Peers::Use use = services_.peers.UseOf(holder);
    if (use == Peers::Use::kBusy) choice.busy.push_back(holder);
    if (use != Peers::Use::kReady) continue;
    const uint64_t rank = (uint64_t{peer->pulls} << 32) + table_.random_.Below(uint64_t{1} << 32);
    if (choice.ready.empty() || rank < best_rank) {
      choice.ready = holder;
      best_rank = rank;
    }
  }
  return choice;
}

void ObjectPull::RefreshPeers() {
  refreshed_ = true;
  refresh_ = services_.peers.Refresh([this](const absl::Status& status) {
    if (!status.ok()) trouble_ = status;
    TryNextHolder();
  });
}

// Nothing is on its way meanwhile: another content may take the id.
void ObjectPull::BackOff() {
  Unregister();
  const absl::StatusCode code = absl::IsNotFound(trouble_) ? trouble_.code() : absl::StatusCode::kUnavailable;
  if (!TellWhoDoesNotWait(code, trouble_.ok() ? "no holder can be asked now" : trouble_.message())) return;
  retry_delay_ = std::clamp(retry_delay_ * 2, table_.options_.first_retry, table_.options_.max_retry);
  timer_ = services_.loop.RunAfter(retry_delay_, [this] { Enter(State::kLocating); });
}

void ObjectPull::Queue(const std::vector<directory::NodeId>& holders) {
  ++table_.counters_.queued;
  Enter(State::kQueued);
  queued_for_ = holders;
  for (const directory::NodeId& holder : holders) table_.Enqueue(holder, *this);
  timer_ = services_.loop.RunAfter(table_.options_.max_queued, [this] { Enter(State::kLocating); });
}

void ObjectPull::TakeTurn() {
  CHECK(state_ == State::kQueued);
  Leave();
  TryNextHolder();
}

// Where others are on their way as well: alone it is moved in as few messages.
bool ObjectPull::MayBeBundled() const {
  return registered_ && !was_bundled_ && table_.running() > 1 && tried_.empty() && IsSmall() &&
         table_.bundles_.Fits(info_.data_size + info_.metadata_size);
}

void ObjectPull::AskInBundle(const directory::NodeId& holder) {
  Enter(State::kBundled);
  was_bundled_ = true;
  holder_ = holder;
  const uint64_t size = info_.data_size + info_.metadata_size;
  vouching_ = table_.bundles_.Ask(services_.peers.Find(holder)->engines.front(), version_, size,
                                  [this, size](const absl::StatusOr<absl::Span<const uint8_t>>& contents) {
                                    vouching_.reset();
                                    if (IsHere()) return Finish(absl::OkStatus());
                                    const bool right = contents.ok() && contents->size() == size;
                                    if (!right || !registered_ || dropped_) return TryNextHolder();
                                    TakeContents(*contents);
                                  });
}

void ObjectPull::MoveFrom(const directory::NodeId& holder) {
  if (absl::Status status = ReservePlace(); !status.ok()) return NoPlace(status);
  const Peers::Peer& peer = *services_.peers.Find(holder);
  bulk_ = IsBulk() && MeetsForBulk(peer) && !services_.peers.BulkRests(peer);
  const uint64_t turn = bulk_ ? ++table_.bulk_pulls_ : 0;
  engine_ = services_.engines[EngineOf(services_.engines.size(), turn)];
  const auto token = engine_->Pull(
      RequestTo(peer, turn), services_.store.Memory(*place_), moved_,
      [this](const absl::Status& status, const transport::TransferReport& report) { Moved(status, report); });
  if (!token.ok()) {
    trouble_ = token.status();
    return Enter(State::kBackOff);
  }
  token_ = *token;
  holder_ = holder;
  if (!tried_.empty()) ++table_.counters_.next_holder;
  tried_.push_back(holder);
  services_.peers.Begin(holder);
  Enter(State::kMoving);
}

absl::Status ObjectPull::ReservePlace() {
  if (place_.has_value()) return absl::OkStatus();
  Record(base::Phase::kReserve);
  const auto place = services_.store.CreateCopy(version_, info_.data_size, info_.metadata_size, owner_, info_.name);
  if (!place.ok()) return place.status();
  CHECK(services_.store.Pin(id_, owner_).ok());
  place_ = *place;
  arrived_ = 0;
  moved_ = 0;
  return absl::OkStatus();
}

bool ObjectPull::IsBulk() const { return info_.data_size + info_.metadata_size > table_.options_.short_way; }

// Where one of both has no engines for bulk, all goes between the first ones. So it does where one
// has software NICs and the other RDMA devices: a software NIC for bulk has a UDP port of its own,
// which an RDMA device does not reach.
bool ObjectPull::MeetsForBulk(const Peers::Peer& peer) const {
  if (peer.engines.size() == 1 || services_.engines.size() == 1) return false;
  return (peer.engines.back().udp_port == 0) == (services_.engines.back()->address().udp_port == 0);
}

transport::PullRequest ObjectPull::RequestTo(const Peers::Peer& peer, uint64_t turn) const {
  transport::PullRequest request;
  request.id = id_;
  request.generation = version_.generation;
  request.owner = peer.engines[EngineOf(peer.engines.size(), turn)];
  request.size = {info_.data_size, info_.metadata_size};
  request.protocol = protocol_;
  request.arrived = arrived_;
  request.deadline = table_.options_.attempt_deadline;
  request.patience = table_.options_.patience;
  request.activity = number_;
  return request;
}

void ObjectPull::NoPlace(const absl::Status& status) {
  trouble_ = status;
  // A program of this node is creating it, or an earlier object of this id is still read.
  const bool in_use = absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status);
  if (!in_use && !absl::IsResourceExhausted(status)) return Finish(status);
  const uint64_t whole = services_.store.arena().size();
  const bool fits = info_.data_size <= whole && info_.metadata_size <= whole - info_.data_size;
  if (!in_use && !fits) return Finish(status);  // it says that this can never be
  if (!TellWhoDoesNotWait(status.code(), status.message())) return;
  table_.counters_.waited_for_room += !in_use;
  Enter(State::kBackOff);
}

void ObjectPull::Moved(const absl::Status& status, const transport::TransferReport& report) {
  CHECK(state_ == State::kMoving);
  const Peers::End end = status.ok()               ? Peers::End::kOk
                         : IsTroubleOfPeer(status) ? Peers::End::kFailed
                                                   : Peers::End::kOther;
  if (bulk_ && end == Peers::End::kFailed && !report.heard) RestBulk(status);
  services_.peers.Ended(holder_, end);
  table_.SlotFreed(holder_);
  report_ = report;
  if (status.ok() && !dropped_) return Arrived();
  const bool may_go_on = report.arrived < info_.data_size + info_.metadata_size;
  arrived_ = may_go_on ? report.arrived : 0;
  moved_ = arrived_;
  if (arrived_ == 0 || dropped_) GiveUpPlace();
  if (waiters_.empty()) return Finish(status);
  if (dropped_) return Enter(State::kBackOff);
  table_.counters_.resumed += arrived_ > 0;
  if (absl::IsCancelled(status)) {  // and then somebody came who wants it
    tried_.erase(std::find(tried_.begin(), tried_.end(), holder_));
    return TryNextHolder();
  }
  ++table_.counters_.failed_attempts;
  table_.counters_.stale_holders += absl::IsNotFound(status);
  if (absl::IsNotFound(status)) services_.places.ForgetHolder(id_, holder_);
  const auto code = absl::IsNotFound(status) ? absl::StatusCode::kUnavailable : status.code();
  trouble_ = absl::Status(code, absl::StrCat("from ", holder_, ": ", status.message()));
  VLOG(1) << "pull of " << id_.ToHex() << " " << trouble_;
  TryNextHolder();
}

// Those that failed together say it once.
void ObjectPull::RestBulk(const absl::Status& status) {
  LOG_IF(WARNING, !services_.peers.BulkRests(*services_.peers.Find(holder_)))
      << "the engine for bulk of " << holder_ << " is not reached (" << status.message()
      << "): for some seconds large objects go the way of small ones; is its port open?";
  services_.peers.RestBulk(holder_);
}

void ObjectPull::Arrived() {
  if (registered_) return SealHere();
  Enter(State::kRegistering);
  if (locate_ == nullptr) return AskToVouch();
  timer_ = services_.loop.RunAt(patient_until_, [this] { AskToVouch(); });
}

// The directory may not know of this copy: the holder has a deletion reach it. What the directory
// answers meanwhile counts as well.
void ObjectPull::AskToVouch() {
  timer_.Cancel();
  const Peers::Peer* peer = services_.peers.Find(holder_);
  if (peer == nullptr) return DoesNotVouch();
  vouching_ = services_.objects.Call(
      peer->engines.front(), EncodeRequest(VouchRequest{version_, services_.engines.front()->address()}),
      table_.options_.directory_deadline,
      [this, asked = services_.loop.Now()](const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
        vouching_.reset();
        const auto good_for = answer.ok() ? DecodeVouchAnswer(*answer) : std::nullopt;
        if (!good_for.has_value() || asked + *good_for <= services_.loop.Now()) return DoesNotVouch();
        vouched_until_ = asked + *good_for;
        SealHere();
      });
}

void ObjectPull::DoesNotVouch() {
  trouble_ = absl::UnavailableError(absl::StrCat("the directory did not answer, and ", holder_,
                                                 " does not vouch for a copy that cannot be registered"));
  services_.membership.Suspect();
  if (locate_ == nullptr) StartOver();
}

void ObjectPull::SealHere() {
  ++table_.counters_.pulled;
  ++table_.counters_.pulled_by[static_cast<size_t>(report_.protocol)];
  table_.counters_.pulled_bytes += report_.size.total();
  if (via_ != Via::kBrought) via_ = ViaOf(report_.protocol);
  if (table_.options_.on_pulled) table_.options_.on_pulled(id_, holder_, report_.protocol);
  if (!registered_) {
    ++table_.counters_.vouched_for;
    services_.membership.NoteUnregistered(version_, vouched_until_);
  }
  registered_ = false;  // it is announced as held
  place_.reset();
  Record(base::Phase::kSeal);
  CHECK(services_.store.Seal(id_, owner_).ok());
  CHECK(services_.store.Release(id_, owner_).ok());
  Finish(absl::OkStatus());
}

void ObjectPull::GiveUpPlace() {
  if (!std::exchange(place_, std::nullopt).has_value()) return;
  arrived_ = 0;
  moved_ = 0;
  CHECK(services_.store.Abort(id_, owner_).ok());
  CHECK(services_.store.Release(id_, owner_).ok());
}

void ObjectPull::Finish(const absl::Status& status) {
  Enter(State::kOver);
  GiveUpPlace();
  Unregister();
  // The directory may have entered this node before it heard that nobody waits for its answer.
  if (std::exchange(locate_, nullptr) != nullptr) services_.membership.Recheck({id_, base::kNoGeneration});
  const auto self = table_.pulls_.extract(id_);  // lives until all are told
  while (!waiters_.empty()) waiters_.PopFront()->Tell(status);
  Record(base::Phase::kOver);
}

}  // namespace tokamak::node

#include "lib/node/pulls/object_pull.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/node/calls/object_messages.h"

namespace tokamak::node {

namespace {

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

ObjectPull::ObjectPull(PullContext& context, const base::ObjectId& id, uint64_t number)
    : context_(context),
      needs_(context.needs),
      id_(id),
      number_(number),
      registration_(context, id, *this),
      holders_(context),
      place_(needs_.store, id),
      attempt_(context, *this),
      waiters_(*this) {}

ObjectPull::~ObjectPull() {
  if (IsLookedFor(state_)) --context_.looked_for;
}

std::unique_ptr<PullWaiter> ObjectPull::AddWaiter(transport::Protocol protocol, base::Generation once,
                                                  PullCallback done) {
  if (protocol != transport::Protocol::kAuto) protocol_ = protocol;
  return waiters_.Add(once, std::move(done));
}

void ObjectPull::OnNobodyWaits() {
  if (state_ == State::kOver) return;
  if (state_ == State::kMoving) return attempt_.Cancel();  // ends in OnMoved
  if (HasArrived(state_)) return;                          // it is here, for the next get
  Finish(absl::CancelledError("nobody waits for it any more"));
}

// Reports to the waiters that do not wait, except those for generation `but`. Not in kMoving.
// Returns false if nobody else waits and the pull is over.
bool ObjectPull::TellWhoDoesNotWait(absl::StatusCode code, absl::string_view why, base::Generation but) {
  if (waiters_.TellWhoDoesNotWait(code, why, but)) return true;
  Finish(absl::Status(code, why));
  return false;
}

// Changes the state, the only place that does; most states start their work here.
void ObjectPull::Enter(State state) {
  CHECK(MayFollow(state_, state)) << static_cast<int>(state_) << " -> " << static_cast<int>(state);
  Leave();
  if (IsLookedFor(state_)) --context_.looked_for;
  if (IsLookedFor(state)) ++context_.looked_for;
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
    case State::kMoving:  // the engine traces more
      return Record(base::Phase::kQueue);
    case State::kRegistering:
      Record(base::Phase::kConfirm);
      return AwaitDirectory();
    case State::kVouching:  // in the phase of kRegistering
      return AskToVouch();
    case State::kOver:
      return Record(base::Phase::kNotify);
    case State::kNew:
    case State::kBringing:   // in the phase of kHinted
    case State::kUnvouched:  // in the phase of kRegistering
      return;
  }
}

void ObjectPull::Record(base::Phase phase) const {
  needs_.trace.Record(
      {needs_.loop.Now(), base::TraceKind::kPhase, needs_.trace_node, static_cast<uint32_t>(phase), 0, number_});
}

void ObjectPull::Leave() {
  timer_.Cancel();
  question_.reset();
  for (const directory::NodeId& holder : std::exchange(queued_for_, {})) context_.table.Dequeue(holder, *this);
}

absl::Status ObjectPull::trouble() const {
  const bool asks = IsLookedFor(state_) && !registration_.answered();
  return asks && (trouble_.ok() || needs_.membership.directory_away()) ? needs_.membership.WhyDirectoryIsSilent()
                                                                       : trouble_;
}

// ---- locating

// The first question answers at once, so that "nobody has it" is known soon; later ones wait for a
// holder to appear.
void ObjectPull::Locate() {
  holders_.BeginRound();
  const bool away = needs_.membership.directory_away();
  if (away || !place_used_) {  // a recently named place needs no question first
    if (const directory::LocatedObject* known = KnownPlace(/*fresh=*/!away)) {
      Take(*known);
      return Enter(State::kHinted);
    }
  }
  const bool answered = registration_.answered();
  if (!registration_.asking()) AskDirectory(answered ? context_.options.locate_wait : base::Duration());
  if (!answered) timer_ = needs_.loop.RunAt(registration_.patient_until(), [this] { TryAnyKnownPlace(); });
}

// Returns the remembered place of a content that was not deleted; null: none.
const directory::LocatedObject* ObjectPull::KnownPlace(bool fresh) const {
  const directory::LocatedObject* known =
      fresh ? needs_.places.FindFresh(id_, needs_.loop.Now()) : needs_.places.Find(id_);
  return known == nullptr || needs_.dropped.Contains({id_, known->generation}) ? nullptr : known;
}

// The directory is slow, or away unnoticed.
void ObjectPull::TryAnyKnownPlace() {
  const directory::LocatedObject* known = KnownPlace(/*fresh=*/false);
  if (known == nullptr) return;
  Take(*known);
  Enter(State::kHinted);
}

// A holder brings a small object and vouches for the copy: the directory is not asked. For others
// the directory enters this node as coming while the bytes are moving.
void ObjectPull::TryKnownPlace() {
  place_used_ = true;
  ++context_.counters.from_cache;
  if (!registration_.asking() && !asked_to_bring_ && IsSmall() && AskToBring()) return;
  if (!registration_.asking() && !needs_.membership.directory_away()) AskDirectory(base::Duration());
  timer_ = needs_.loop.Post([this] { TryNextHolder(); });
}

// Returns false if no holder can be asked now.
bool ObjectPull::AskToBring() {
  const PullHolders::Choice choice = holders_.Choose(info_.holders, version_);
  if (choice.ready.empty()) return false;
  Enter(State::kBringing);
  asked_to_bring_ = true;
  bringer_ = choice.ready;
  timer_ = needs_.loop.RunAfter(context_.options.directory_patience, [this] { Enter(State::kLocating); });
  question_ = needs_.objects.Call(
      needs_.peers.Find(bringer_)->engines.front(),
      EncodeRequest(BringRequest{version_, needs_.engines.front()->address()}), context_.options.directory_deadline,
      [this, asked = needs_.loop.Now()](const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
        question_.reset();
        if (EndIfHere()) return;
        const auto brought = answer.ok() ? DecodeBringAnswer(*answer) : std::nullopt;
        const bool right = brought.has_value() && asked + brought->good_for > needs_.loop.Now() &&
                           brought->data_size == info_.data_size && brought->metadata_size == info_.metadata_size;
        if (!right || needs_.dropped.Contains(version_)) return Enter(State::kLocating);
        registration_.Vouch(version_, asked + brought->good_for);
        TakeContents(brought->contents);
      });
  return true;
}

bool ObjectPull::IsSmall() const {
  return protocol_ == transport::Protocol::kAuto && !place_.reserved() &&
         directory::IsSmallEnoughToBring(info_.data_size, info_.metadata_size);
}

// A waiter that asks for a protocol gets it; an object already moving need not be brought.
void ObjectPull::AskDirectory(base::Duration wait) {
  const bool may_bring = state_ == State::kLocating && protocol_ == transport::Protocol::kAuto && !place_.reserved();
  registration_.Ask(wait, may_bring);
}

void ObjectPull::OnLocated(const absl::StatusOr<directory::LocatedObject>& info) {
  if (state_ == State::kLocating) return Located(info);
  Registered(info);
}

void ObjectPull::Located(const absl::StatusOr<directory::LocatedObject>& info) {
  if (EndIfHere()) return;
  if (!info.ok()) {
    trouble_ = info.status();
    if (!absl::IsNotFound(trouble_)) return Enter(State::kBackOff);  // an outage is waited out
    registration_.NoteAnswer();
    place_.GiveUp();  // nobody can bring the rest; a program may put it here again
    if (!TellWhoDoesNotWait(trouble_.code(), trouble_.message())) return;
    return Enter(State::kLocating);
  }
  registration_.NoteAnswer();
  const base::ObjectVersion version{id_, info->generation};
  if (registration_.WasWithdrawn(version)) return AskDirectory(base::Duration());
  if (needs_.dropped.Contains(version)) {
    needs_.copies.OnDeletedIsNamed(version);
    return Enter(State::kBackOff);
  }
  Take(*info);
  registration_.Enter(version);
  if (absl::IsNotFound(trouble_)) trouble_ = absl::OkStatus();  // somebody has it now
  if (!TellWhoDoesNotWait(absl::StatusCode::kAlreadyExists, "another content has its id", version.generation)) return;
  if (info->contents.empty() || place_.reserved()) return TryNextHolder();
  bringer_ = info_.holders.front();
  TakeContents(info->contents);
}

void ObjectPull::TakeContents(absl::Span<const uint8_t> contents) {
  if (absl::Status status = ReservePlace(); !status.ok()) return NoPlace(status);
  Record(base::Phase::kCopy);
  base::Copy(needs_.loop, place_.memory().data(), contents.data(), contents.size());
  ++context_.counters.brought;
  transport::TransferReport report;
  report.protocol = transport::Protocol::kEager;
  report.size = {info_.data_size, info_.metadata_size};
  SealHere(bringer_, report, Via::kBrought);
}

// The directory's answer comes while the object is moving already, from a remembered place.
void ObjectPull::Registered(const absl::StatusOr<directory::LocatedObject>& info) {
  const bool same = info.ok() && info->generation == version_.generation && !registration_.WasWithdrawn(version_);
  if (same) {
    registration_.NoteAnswer();
    if (!dropped_) registration_.Enter(version_);
    info_.holders = info->holders;
    if (HasArrived(state_)) SealMoved();
    return;
  }
  if (!info.ok()) trouble_ = info.status();
  if (!info.ok() && !absl::IsNotFound(info.status())) return NotRegistered();
  needs_.places.Forget(id_);  // the remembered place is outdated
  dropped_ = true;
  if (state_ == State::kMoving) return attempt_.Cancel();
  StartOver();
}

// The directory did not answer. The transfer goes on: its holder may vouch for the copy.
void ObjectPull::NotRegistered() {
  if (state_ == State::kRegistering) return Enter(State::kVouching);
  if (state_ == State::kUnvouched) StartOver();
}

void ObjectPull::Take(const directory::LocatedObject& info) {
  const base::ObjectVersion version{id_, info.generation};
  if (version != version_) {
    registration_.TakeBack();
    place_.GiveUp();
  }
  version_ = version;
  dropped_ = false;
  info_ = info;
  info_.contents = {};
}

// Ends the pull of this content; the waiters wait for another.
void ObjectPull::Drop(const base::ObjectVersion& version) {
  if (version != version_ || state_ == State::kOver || dropped_) return;
  ++context_.counters.deleted;
  dropped_ = true;
  registration_.Forget();
  trouble_ = absl::NotFoundError("the object was deleted");
  if (state_ == State::kMoving) return attempt_.Cancel();
  if (state_ == State::kLocating) return place_.GiveUp();
  StartOver();
}

// From any state except kMoving.
void ObjectPull::StartOver() {
  place_.GiveUp();
  if (waiters_.empty()) return Finish(absl::CancelledError("nobody waits for it any more"));
  Enter(State::kBackOff);
}

// ---- moving

void ObjectPull::TryNextHolder() {
  if (EndIfHere()) return;
  const PullHolders::Choice choice = holders_.Choose(info_.holders, version_);
  if (!choice.ready.empty()) return MayBeBundled() ? AskInBundle(choice.ready) : MoveFrom(choice.ready);
  if (choice.look_up && !needs_.membership.directory_away()) return Enter(State::kRefreshing);
  if (!choice.busy.empty()) return Queue(choice.busy);
  Enter(State::kBackOff);
}

void ObjectPull::RefreshPeers() {
  holders_.NoteRefreshed();
  question_ = needs_.peers.Refresh([this](const absl::Status& status) {
    if (!status.ok()) trouble_ = status;
    TryNextHolder();
  });
}

// No content is on its way meanwhile: another may take the id.
void ObjectPull::BackOff() {
  registration_.TakeBack();
  const absl::StatusCode code = absl::IsNotFound(trouble_) ? trouble_.code() : absl::StatusCode::kUnavailable;
  if (!TellWhoDoesNotWait(code, trouble_.ok() ? "no holder can be asked now" : trouble_.message())) return;
  retry_delay_ = std::clamp(retry_delay_ * 2, context_.options.first_retry, context_.options.max_retry);
  timer_ = needs_.loop.RunAfter(retry_delay_, [this] { Enter(State::kLocating); });
}

void ObjectPull::Queue(const std::vector<directory::NodeId>& holders) {
  ++context_.counters.queued;
  Enter(State::kQueued);
  queued_for_ = holders;
  for (const directory::NodeId& holder : holders) context_.table.Enqueue(holder, *this);
  timer_ = needs_.loop.RunAfter(context_.options.max_queued, [this] { Enter(State::kLocating); });
}

void ObjectPull::TakeTurn() {
  CHECK(state_ == State::kQueued);
  Leave();
  TryNextHolder();
}

// Only if other pulls run as well: alone, an object moves in as few messages.
bool ObjectPull::MayBeBundled() const {
  return registration_.entered() && !was_bundled_ && context_.table.running() > 1 && holders_.none_tried() &&
         IsSmall() && context_.bundles.Fits(size());
}

void ObjectPull::AskInBundle(const directory::NodeId& holder) {
  Enter(State::kBundled);
  was_bundled_ = true;
  bringer_ = holder;
  question_ = context_.bundles.Ask(needs_.peers.Find(holder)->engines.front(), version_, size(),
                                   [this](const absl::StatusOr<absl::Span<const uint8_t>>& contents) {
                                     question_.reset();
                                     if (EndIfHere()) return;
                                     const bool right = contents.ok() && contents->size() == size();
                                     if (!right || !registration_.entered()) return TryNextHolder();
                                     TakeContents(*contents);
                                   });
}

void ObjectPull::MoveFrom(const directory::NodeId& holder) {
  if (absl::Status status = ReservePlace(); !status.ok()) return NoPlace(status);
  transport::PullRequest request;
  request.id = id_;
  request.generation = version_.generation;
  request.size = {info_.data_size, info_.metadata_size};
  request.protocol = protocol_;
  request.arrived = place_.arrived();
  request.activity = number_;
  if (absl::Status status = attempt_.Begin(holder, request, place_.memory(), place_.moved()); !status.ok()) {
    trouble_ = status;
    return Enter(State::kBackOff);
  }
  if (!holders_.none_tried()) ++context_.counters.next_holder;
  holders_.NoteTried(holder);
  Enter(State::kMoving);
}

absl::Status ObjectPull::ReservePlace() {
  if (place_.reserved()) return absl::OkStatus();
  Record(base::Phase::kReserve);
  return place_.Reserve(info_);
}

void ObjectPull::NoPlace(const absl::Status& status) {
  trouble_ = status;
  // A program of this node is creating it, or an earlier object of this id is still being read.
  const bool in_use = absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status);
  if (!in_use && !absl::IsResourceExhausted(status)) return Finish(status);
  const uint64_t whole = needs_.store.arena().size();
  const bool fits = info_.data_size <= whole && info_.metadata_size <= whole - info_.data_size;
  if (!in_use && !fits) return Finish(status);  // the status reports that this can never be
  if (!TellWhoDoesNotWait(status.code(), status.message())) return;
  context_.counters.waited_for_room += !in_use;
  Enter(State::kBackOff);
}

void ObjectPull::OnMoved(const absl::Status& status) {
  CHECK(state_ == State::kMoving);
  if (status.ok() && !dropped_) return Arrived();
  place_.Cut(dropped_ ? 0 : attempt_.report().arrived);
  if (waiters_.empty()) return Finish(status);
  if (dropped_) return Enter(State::kBackOff);
  context_.counters.resumed += place_.arrived() > 0;
  if (absl::IsCancelled(status)) {  // and then somebody came who wants it
    holders_.Forgive(attempt_.holder());
    return TryNextHolder();
  }
  Failed(status);
}

void ObjectPull::Failed(const absl::Status& status) {
  const directory::NodeId& holder = attempt_.holder();
  const bool stale = absl::IsNotFound(status);
  ++context_.counters.failed_attempts;
  context_.counters.stale_holders += stale;
  if (stale) needs_.places.ForgetHolder(id_, holder);
  const auto code = stale ? absl::StatusCode::kUnavailable : status.code();
  trouble_ = absl::Status(code, absl::StrCat("from ", holder, ": ", status.message()));
  LOG(DEBUG) << "pull of " << id_.ToHex() << " " << trouble_;
  TryNextHolder();
}

void ObjectPull::Arrived() {
  if (registration_.entered()) return SealMoved();
  Enter(State::kRegistering);
}

void ObjectPull::AwaitDirectory() {
  if (!registration_.asking()) return Enter(State::kVouching);
  timer_ = needs_.loop.RunAt(registration_.patient_until(), [this] { Enter(State::kVouching); });
}

// The directory may not know of this copy: the holder has a deletion reach it. An answer of the
// directory meanwhile counts as well.
void ObjectPull::AskToVouch() {
  const Peers::Peer* peer = needs_.peers.Find(attempt_.holder());
  if (peer == nullptr) return DoesNotVouch();
  question_ = needs_.objects.Call(
      peer->engines.front(), EncodeRequest(VouchRequest{version_, needs_.engines.front()->address()}),
      context_.options.directory_deadline,
      [this, asked = needs_.loop.Now()](const absl::StatusOr<absl::Span<const uint8_t>>& answer) {
        question_.reset();
        const auto good_for = answer.ok() ? DecodeVouchAnswer(*answer) : std::nullopt;
        if (!good_for.has_value() || asked + *good_for <= needs_.loop.Now()) return DoesNotVouch();
        registration_.Vouch(version_, asked + *good_for);
        SealMoved();
      });
}

void ObjectPull::DoesNotVouch() {
  trouble_ = absl::UnavailableError(absl::StrCat("the directory did not answer, and ", attempt_.holder(),
                                                 " does not vouch for a copy that cannot be registered"));
  needs_.membership.Suspect();
  if (registration_.asking()) return Enter(State::kUnvouched);
  StartOver();
}

void ObjectPull::SealMoved() { SealHere(attempt_.holder(), attempt_.report(), ViaOf(attempt_.report().protocol)); }

void ObjectPull::SealHere(const directory::NodeId& holder, const transport::TransferReport& report, Via via) {
  ++context_.counters.pulled;
  ++context_.counters.pulled_by[static_cast<size_t>(report.protocol)];
  context_.counters.pulled_bytes += report.size.total();
  via_ = via;
  if (context_.options.on_pulled) context_.options.on_pulled(id_, holder, report.protocol);
  registration_.Seal();
  Record(base::Phase::kSeal);
  place_.Seal();
  Finish(absl::OkStatus());
}

// A program may have put it here meanwhile, for example.
bool ObjectPull::EndIfHere() {
  if (!needs_.store.Contains(id_)) return false;
  Finish(absl::OkStatus());
  return true;
}

void ObjectPull::Finish(const absl::Status& status) {
  Enter(State::kOver);
  place_.GiveUp();
  registration_.End();
  const auto self = context_.table.TakeOut(id_);  // lives until all waiters have their answer
  waiters_.TellAll(status, via_);
  Record(base::Phase::kOver);
}

}  // namespace tokamak::node

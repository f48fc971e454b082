#include "lib/node/cluster/membership.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::node {

namespace {

// Fences a little before the directory counts this node as gone: clocks differ.
base::Duration FenceAfter(const MembershipOptions& options) {
  const base::Duration whole = options.lease + options.grace;
  return whole - whole / 32;
}

}  // namespace

class Membership::Confirmation final : public base::Handle {
 public:
  Confirmation(Membership& membership, const base::ObjectVersion& version, base::Duration deadline, StatusCallback done)
      : membership_(membership), watch_(membership.lifetime_.Watched()), version_(version), done_(std::move(done)) {
    CHECK(membership_.confirmations_.emplace(version_, this).second) << "confirmed twice";
    timer_ = membership_.loop_.RunAfter(deadline, [this] {
      membership_.Conclude(version_,
                           absl::UnavailableError("the directory has not confirmed in time that the id is free"));
    });
  }
  ~Confirmation() override {
    if (!answered_ && !watch_.over()) membership_.confirmations_.erase(version_);
  }

  // May drop this.
  void Answer(const absl::Status& status) {
    answered_ = true;
    timer_.Cancel();
    const StatusCallback done = std::move(done_);
    done(status);
  }

 private:
  Membership& membership_;
  const base::Lifetime::Watch watch_;
  const base::ObjectVersion version_;
  StatusCallback done_;
  base::Timer timer_;
  bool answered_ = false;
};

Membership::Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Copies& copies,
                       directory::NodeInfo self, const MembershipOptions& options)
    : loop_(loop),
      store_(store),
      directory_(directory),
      copies_(copies),
      self_info_(std::move(self)),
      options_(options),
      unregistered_(loop, [this](const base::ObjectVersion& version) { GiveUpUnregistered(version); }),
      comparison_({loop, store, directory, self_info_.id, options.directory_deadline}, ComparisonCallbacks()) {
  subscription_ = store_.Subscribe([this](absl::Span<const store::Event> events) { Mark(events); });
}

Membership::~Membership() = default;

void Membership::Start(StatusCallback answered) {
  on_answer_ = std::move(answered);
  Renew();
  CompareLater();
}

void Membership::Leave(StatusCallback left) {
  leaving_ = true;
  joined_ = false;
  join_.reset();
  comparison_.Stop();
  batches_.clear();
  renew_timer_.Cancel();
  retry_timer_.Cancel();
  compare_timer_.Cancel();
  back_off_timer_.Cancel();
  leave_ = directory_.Leave(self_info_.id, self_info_.incarnation, options_.directory_deadline, std::move(left));
}

bool Membership::MayBeElsewhere(const base::ObjectVersion& version) const {
  if (!fresh_.contains(version)) return true;
  const auto dirty = dirty_.find(version);
  return dirty != dirty_.end() && dirty->second->may_be_known;
}

bool Membership::fenced() const { return fence_due_ || (fenced_at_.has_value() && loop_.Now() >= *fenced_at_); }

std::optional<base::Time> Membership::DeletionsReachUntil(const base::ObjectVersion& version) const {
  if (leaving_ || sweeping_ || !fenced_at_.has_value()) return std::nullopt;
  return std::min(*fenced_at_, unregistered_.Until(version).value_or(*fenced_at_));
}

// ---- the lease

void Membership::Renew() {
  directory::JoinRequest request;
  request.node = self_info_;
  request.lease = options_.lease;
  request.grace = options_.grace;
  request.returning = returning_;
  request.complete = complete() && !away_;
  request.mark = mark_;
  join_ = directory_.Join(
      request, options_.directory_deadline,
      [this, sent = loop_.Now(), complete = request.complete](const absl::StatusOr<directory::JoinReply>& reply) {
        join_.reset();
        Renewed(sent, complete, reply);
      });
}

void Membership::Renewed(base::Time sent, bool complete, const absl::StatusOr<directory::JoinReply>& reply) {
  const bool unanswered = std::exchange(away_, !reply.ok());
  renew_timer_ = loop_.RunAfter(reply.ok() ? options_.renew : options_.retry, [this] { Renew(); });
  if (reply.ok()) {
    ++counters_.renewals;
    LOG_IF(INFO, !joined_ || unanswered) << self_info_.id << " is in the directory";
    fence_due_ = fenced();
    const bool was_silent = fenced_at_.has_value() && sent - (*fenced_at_ - FenceAfter(options_)) > options_.lease;
    if (was_silent) LookForLosses();
    fenced_at_ = sent + FenceAfter(options_);
    joined_ = true;
    told_complete_ = complete && !(reply->entered && returning_);  // else an earlier directory
    mark_ = reply->mark;
    as_of_ = reply->as_of;
    LOG_IF(WARNING, reply->outdated && !outdated_)
        << self_info_.id << " was gone while more was deleted than the directory remembers: what it holds and no "
        << "other node has is dropped";
    outdated_ = reply->outdated;
    // An unanswered renewal may have entered us.
    if (reply->entered || unanswered) Entered();
    returning_ = true;
    size_t confirmed = 0;
    for (const base::ObjectVersion& version : reply->drops) {
      ++counters_.dropped;
      copies_.Drop(version, absl::AbortedError("it was deleted"));
      const bool says_so = MarkDirty(version);
      confirmed += says_so && !copies_.StaysEntered(version) ? 1 : 0;
    }
    if (reply->drops.size() >= directory::kMaxDropsTold && confirmed > 0)
      renew_timer_ = loop_.Post([this] { Renew(); });
    retry_timer_.Cancel();
    Flush();
    SayIfComplete();
  } else {
    ++counters_.failed_renewals;
    const std::string trouble(reply.status().message());
    const bool is_news = trouble != std::exchange(last_trouble_, trouble);
    LOG_IF(WARNING, !unanswered || is_news) << "the directory does not take this node's lease: " << reply.status();
  }
  if (on_answer_ == nullptr) return;
  const StatusCallback answered = reply.ok() ? std::exchange(on_answer_, nullptr) : on_answer_;
  answered(reply.status());  // may drop us
}

void Membership::Entered() {
  ++counters_.re_announcements;
  sweeping_ = true;
  swept_to_.reset();
}

absl::Status Membership::WhyDirectoryIsSilent() const {
  return absl::UnavailableError(away_ ? absl::StrCat("the directory is away: ", last_trouble_)
                                      : "the directory has not answered yet");
}

void Membership::Suspect() {
  if (leaving_ || join_ != nullptr) return;
  renew_timer_ = loop_.Post([this] { Renew(); });
}

// Deletions wait for this renewal.
void Membership::SayIfComplete() {
  if (!joined_ || !complete()) return;
  fence_due_ = false;
  if (!told_complete_ && join_ == nullptr) renew_timer_ = loop_.Post([this] { Renew(); });
}

// ---- dirty versions

void Membership::Mark(absl::Span<const store::Event> events) {
  bool urgent = false, made_here = false;
  for (const store::Event& event : events) {
    const base::ObjectVersion version{event.id, event.generation};
    if (event.kind == store::Event::Kind::kSealed) {
      if (event.origin == store::Origin::kCreatedHere && !fresh_.insert(version).second) continue;  // see Confirm
    } else if (IsUnannounced(version)) {
      unregistered_.Remove(version);
      const auto dirty = dirty_.find(version);
      const bool was_said =
          dirty != dirty_.end() && (dirty->second->state == Dirty::State::kInFlight || dirty->second->may_be_known);
      if (fresh_.erase(version) != 0 && !was_said) {  // unknown to the directory
        if (dirty != dirty_.end()) Done(*dirty->second);
        Conclude(version, absl::NotFoundError("the object was deleted before the directory knew it"));
        continue;
      }
    }
    MarkDirty(version);
    urgent |= event.kind != store::Event::Kind::kSealed || unregistered_.Contains(version);
    made_here |= event.origin == store::Origin::kCreatedHere;
  }
  if (urgent) return Flush();
  const base::Time now = loop_.Now();
  FlushAt(made_here ? std::max(now, announced_at_ + options_.gather_announcements) : now + options_.gather_copies);
}

void Membership::Recheck(const base::ObjectVersion& version) {
  MarkDirty(version);
  Flush();
}

// True if noted.
bool Membership::MarkDirty(const base::ObjectVersion& version, bool swept) {
  if (leaving_) return false;
  if (room() == 0 && !IsConfirming(version) && !dirty_.contains(version)) {
    Overflow();
    return false;
  }
  auto [found, is_new] = dirty_.try_emplace(version, nullptr);
  if (is_new) found->second = std::make_unique<Dirty>(version);
  Dirty& dirty = *found->second;
  if (swept && !dirty.swept) {
    dirty.swept = true;
    ++swept_outstanding_;
  }
  if (is_new) {
    Enqueue(dirty);
  } else if (dirty.state == Dirty::State::kInFlight) {
    dirty.again = true;
  }
  return true;
}

void Membership::Enqueue(Dirty& dirty) {
  dirty.first = IsConfirming(dirty.version);
  (dirty.first ? first_ : queue_).PushBack(&dirty);
}

// Spares objects handed over by a leaving node: there may be no other.
void Membership::GiveUpUnregistered(const base::ObjectVersion& version) {
  const absl::StatusOr<store::StoredObject> info = store_.Stat(version.id);
  if (!info.ok() || info->origin == store::Origin::kCreatedHere) return;
  store_.DeleteVersion(version, store::Event::Kind::kEvicted).IgnoreError();  // kNotFound: gone
}

void Membership::Overflow() {
  if (std::exchange(overflowed_, true)) return;
  ++counters_.overflows;
  LOG_EVERY_N(WARNING, 100) << "more than " << options_.max_dirty
                            << " objects came and went that the directory has not heard of: what it knows of this "
                            << "node is compared with what is here when it has heard of these";
}

// ---- updates

void Membership::FlushAt(base::Time time) {
  if (gather_timer_.armed() && flush_at_ <= time) return;
  flush_at_ = time;
  gather_timer_ = loop_.RunAt(time, [this] { Flush(); });
}

void Membership::Flush() {
  if (!joined_ || retry_timer_.armed()) return;
  gather_timer_.Cancel();
  do {
    if (sweeping_ && queued() < options_.words_at_once) MarkNextPage();
  } while (batches_.size() < kBatchesInFlight && queued() > 0 && SendBatch());
  if (!MayCompare() || room() == 0) return;
  if (overflowed_ && !comparison_.running() && !comparison_failed_) Compare();
  comparison_.Continue();
}

// Queues at least one while there is room and more: its end calls for the next page.
void Membership::MarkNextPage() {
  const size_t queued_before = queued();
  while (sweeping_ && queued() == queued_before && room() > 0) {
    const std::vector<store::StoredObject> page = store_.List(std::min(room(), options_.words_at_once), swept_to_);
    for (const store::StoredObject& object : page) {
      if (object.state == store::State::kSealed) MarkDirty({object.id, object.location.generation}, true);
    }
    sweeping_ = !page.empty();
    if (sweeping_) swept_to_ = page.back().id;
  }
}

// Returns the present truth. nullopt: a pull is bringing it. Does not deny a finished pull, which
// the directory may know only by its Locate until it accepts the announcement.
std::optional<directory::Update> Membership::Word(const Dirty& dirty) {
  const base::ObjectVersion& version = dirty.version;
  directory::Update word;
  word.version = version;
  const std::optional<store::Location> place = store_.Find(version.id);
  if (place.has_value() && version.generation == base::kNoGeneration) return std::nullopt;
  if (place.has_value() && place->generation == version.generation) {
    word.kind = directory::Update::Kind::kAnnounce;
    word.data_size = place->data_size;
    word.metadata_size = place->metadata_size;
    word.standing = StandingOf(dirty);
    word.name = store_.Stat(version.id)->name;
    return word;
  }
  if (copies_.StaysEntered(version)) return std::nullopt;
  word.kind = directory::Update::Kind::kWithdraw;
  return word;
}

directory::Standing Membership::StandingOf(const Dirty& dirty) const {
  if (!fresh_.contains(dirty.version)) return directory::Standing::kEstablished;
  return dirty.may_be_known ? directory::Standing::kUnanswered : directory::Standing::kNew;
}

bool Membership::SendBatch() {
  Batch batch;
  absl::InlinedVector<directory::Update, 1> words;
  size_t names = 0;  // bytes
  while (queued() > 0 && words.size() < options_.words_at_once && names < kNamesAtOnce) {
    Dirty& dirty = *(first_.empty() ? queue_ : first_).PopFront();
    std::optional<directory::Update> word = Word(dirty);
    if (!word.has_value()) {
      Done(dirty);
      continue;
    }
    dirty.state = Dirty::State::kInFlight;
    dirty.again = false;
    batch.words.push_back({&dirty, word->kind == directory::Update::Kind::kAnnounce});
    names += word->name.text().size();
    words.push_back(*std::move(word));
  }
  if (words.empty()) return true;
  announced_at_ = loop_.Now();
  const uint64_t number = ++last_batch_;
  Batch& sent = batches_[number] = std::move(batch);
  sent.call = directory_.Update(
      self_info_.id, as_of_, words, options_.directory_deadline,
      [this, number](const absl::StatusOr<directory::UpdateStatuses>& statuses) { Answered(number, statuses); });
  for (const directory::Update& word : words) {
    if (word.kind == directory::Update::Kind::kWithdraw) copies_.OnWithdraw(word.version);
  }
  return true;
}

void Membership::Answered(uint64_t number, const absl::StatusOr<directory::UpdateStatuses>& statuses) {
  auto batch = batches_.extract(number);
  const auto& words = batch.mapped().words;
  if (!statuses.ok() || statuses->size() != words.size()) {
    for (const Said& said : words) {
      said.dirty->may_be_known |= said.announces;
      Requeue(*said.dirty);
    }
    retry_timer_ = loop_.RunAfter(options_.retry, [this] { Flush(); });
    if (absl::IsNotFound(statuses.status())) joined_ = false;  // lease lost: join again
    Suspect();
    return;
  }
  const base::Lifetime::Watch watch = lifetime_.Watched();
  for (size_t i = 0; i < words.size(); ++i) {
    Told(*words[i].dirty, words[i].announces, (*statuses)[i]);
    if (watch.over()) return;
  }
  Flush();
  SayIfComplete();
}

void Membership::Told(Dirty& dirty, bool announced, const absl::Status& status) {
  const base::ObjectVersion version = dirty.version;
  if (!status.ok() && absl::IsNotFound(status)) {
    Requeue(dirty);
    joined_ = false;
    return Suspect();
  }
  const bool is_final =
      status.ok() || absl::IsAlreadyExists(status) || absl::IsAborted(status) || absl::IsInvalidArgument(status);
  if (!is_final) {
    BackOff(dirty);
    if (absl::IsFailedPrecondition(status)) Suspect();                 // the update is too old
    if (absl::IsResourceExhausted(status)) Conclude(version, status);  // no room by the deadline
    return;
  }
  if (dirty.again) {
    Requeue(dirty);
  } else {
    Done(dirty);
  }
  if (status.ok()) {
    ++(announced ? counters_.announced : counters_.withdrawn);
    fresh_.erase(version);
    unregistered_.Remove(version);
    return Conclude(version, announced
                                 ? absl::OkStatus()
                                 : absl::NotFoundError("the object was deleted before the directory confirmed it"));
  }
  if (absl::IsInvalidArgument(status)) {
    LOG_EVERY_N(WARNING, 100) << "object " << version.id.ToHex()
                              << " stays unknown to other nodes: " << status.message();
    return Conclude(version, status);
  }
  ++(absl::IsAborted(status) ? counters_.dropped : counters_.refused);
  LOG_IF(WARNING, absl::IsAlreadyExists(status) || (outdated_ && absl::IsAborted(status)))
      << "object " << version.id.ToHex() << " of this node is dropped: " << status.message();
  fresh_.erase(version);
  unregistered_.Remove(version);
  copies_.Drop(version, status);
  Conclude(version, status);
}

void Membership::Requeue(Dirty& dirty) {
  dirty.state = Dirty::State::kQueued;
  dirty.again = false;
  Enqueue(dirty);
}

void Membership::BackOff(Dirty& dirty) {
  dirty.state = Dirty::State::kBackingOff;
  dirty.back_off = std::clamp(dirty.back_off * 2, options_.first_back_off, options_.max_back_off);
  backing_off_.emplace(loop_.Now() + dirty.back_off, &dirty);
  back_off_timer_ = loop_.RunAt(backing_off_.begin()->first, [this] { EndBackOffs(); });
}

void Membership::EndBackOffs() {
  while (!backing_off_.empty() && backing_off_.begin()->first <= loop_.Now()) {
    Requeue(*backing_off_.begin()->second);
    backing_off_.erase(backing_off_.begin());
  }
  if (!backing_off_.empty()) back_off_timer_ = loop_.RunAt(backing_off_.begin()->first, [this] { EndBackOffs(); });
  Flush();
}

void Membership::Done(Dirty& dirty) {
  if (dirty.swept) --swept_outstanding_;
  if (base::IntrusiveList<Dirty, &Dirty::link>::Listed(&dirty)) (dirty.first ? first_ : queue_).Remove(&dirty);
  if (dirty.state == Dirty::State::kBackingOff) {
    const auto waits = std::find_if(backing_off_.begin(), backing_off_.end(),
                                    [&dirty](const auto& entry) { return entry.second == &dirty; });
    if (waits != backing_off_.end()) backing_off_.erase(waits);
  }
  dirty_.erase(base::ObjectVersion(dirty.version));
}

// The store's event comes later and finds it marked.
base::Pending Membership::Confirm(const base::ObjectVersion& version, base::Duration deadline, StatusCallback done) {
  auto confirmation = std::make_unique<Confirmation>(*this, version, deadline, std::move(done));
  fresh_.insert(version);
  MarkDirty(version);
  const auto dirty = dirty_.find(version);  // none: this node leaves
  if (dirty != dirty_.end() && dirty->second->state == Dirty::State::kQueued && !dirty->second->first) {
    queue_.Remove(dirty->second.get());
    Enqueue(*dirty->second);
  }
  FlushAt(loop_.Now());
  return confirmation;
}

void Membership::Conclude(const base::ObjectVersion& version, const absl::Status& status) {
  const auto confirmation = confirmations_.extract(version);
  if (!confirmation.empty()) confirmation.mapped()->Answer(status);  // may drop us
}

// ---- comparison

Comparison::Callbacks Membership::ComparisonCallbacks() {
  Comparison::Callbacks callbacks;
  callbacks.room = [this] { return MayCompare() ? room() : 0; };
  callbacks.is_told = [this](const base::ObjectVersion& version) { return dirty_.contains(version); };
  callbacks.differs = [this](const base::ObjectVersion& version, bool here) { Differs(version, here); };
  callbacks.ended = [this](const absl::Status& status) { Compared(status); };
  return callbacks;
}

bool Membership::MayCompare() const {
  return joined_ && !away_ && !sweeping_ && !retry_timer_.armed() && queued() < options_.words_at_once;
}

void Membership::CompareLater() {
  compare_timer_ = loop_.RunAfter(options_.verify_every, [this] { Compare(); });
}

void Membership::DirectoryHasLost() {
  SuspectOthers();
  LookForLosses();
}

// By half of this every node has begun a comparison.
void Membership::SuspectOthers() { others_may_be_lost_until_ = loop_.Now() + options_.verify_every * 2; }

void Membership::LookForLosses() {
  if (!leaving_ && !comparison_.running()) Compare();
}

void Membership::Compare() {
  compare_timer_.Cancel();
  comparison_failed_ = false;
  lost_ = 0;
  compares_all_ |= std::exchange(overflowed_, false);
  comparison_.Begin(compares_all_);
}

// A version not noted was not lost.
void Membership::Differs(const base::ObjectVersion& version, bool here) {
  if (here && !compares_all_) {
    ++counters_.repaired;
    ++lost_;
    SuspectOthers();
  }
  MarkDirty(version);
  FlushAt(loop_.Now());
}

void Membership::Compared(const absl::Status& status) {
  LOG_IF(WARNING, lost_ > 0) << "the directory had lost " << lost_ << " objects of this node, and is told again";
  const bool compared_all = std::exchange(compares_all_, false);
  if (status.ok() && overflowed_) return Compare();
  CompareLater();
  if (status.ok()) return;
  LOG(WARNING) << "what the directory knows of this node was not compared to the end with what is here: " << status;
  Suspect();
  comparison_failed_ = true;
  overflowed_ |= compared_all;
  if (overflowed_) compare_timer_ = loop_.RunAfter(options_.renew, [this] { Compare(); });
}

}  // namespace tokamak::node

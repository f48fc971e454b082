#include "lib/transport/pull.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::transport {
namespace {

absl::Status OutOfTurn(const char* what) { return absl::InvalidArgumentError(absl::StrCat(what, " out of turn")); }

}  // namespace

Pull::Pull(Context& context, Host& host, PullId id, const PullRequest& request, std::unique_ptr<Sink> sink)
    : context_(context),
      host_(host),
      id_(id),
      request_(request),
      sink_(std::move(sink)),
      started_(context.loop.Now()),
      memory_(sink_->memory()),
      choice_(ChooseByExperience()),
      asked_(AskedProtocol()),
      eager_(context.loop, request.size, memory_, request.arrived),
      write_(*this),
      arrived_(request.arrived) {
  context_.pulls.emplace(id_, this);
  ++context_.counters.pulls_started;
  context_.Record(base::TraceKind::kTransferStart, static_cast<uint32_t>(asked_), request.size.total());
  Moves();
  LimitTo(request.deadline);
}

Pull::~Pull() { context_.pulls.erase(id_); }

Protocol Pull::GivenProtocol() const {
  if (request_.protocol != Protocol::kAuto) return request_.protocol;
  return context_.options.policy.Choose(request_.size.total() - request_.arrived);
}

AdaptivePolicy::Choice Pull::ChooseByExperience() {
  if (context_.adaptive == nullptr || request_.protocol != Protocol::kAuto || memory_.empty()) return {};
  const AdaptivePolicy::Choice choice =
      context_.adaptive->Choose(request_.owner.ip, memory_.size() - request_.arrived, context_.loop.Now());
  ++context_.counters.adaptive_pulls;
  if (choice.explores) ++context_.counters.adaptive_explored;
  return choice;
}

void Pull::TellHowItEnded() {
  if (choice_.protocol == Protocol::kAuto) return;
  AdaptivePolicy::End end;
  end.ok = outcome_.ok();
  end.took = has_turn_ ? context_.loop.Now() - began_ : base::Duration();
  end.typical = typical_;
  EndpointCounters& counters = context_.counters;
  const auto nanoseconds = static_cast<uint64_t>(end.took.nanoseconds());
  if (end.ok) counters.adaptive_nanoseconds += nanoseconds;
  if (choice_.explores) counters.adaptive_explored_nanoseconds += nanoseconds;
  const bool changed =
      context_.adaptive->Ended(request_.owner.ip, memory_.size() - request_.arrived, choice_, end, context_.loop.Now());
  if (changed) ++counters.adaptive_links_changed;
}

void Pull::LimitTo(base::Duration left) {
  const base::Time limit = context_.loop.Now() + left;
  if (limit_.armed() && limit >= deadline_time_) return;
  deadline_time_ = limit;
  ArmLimit();
}

void Pull::ArmLimit() {
  limit_ = context_.loop.RunAt(std::min(deadline_time_, moved_at_ + request_.patience), [this] { OnLimit(); });
}

void Pull::OnLimit() {
  if (context_.loop.Now() >= deadline_time_) {
    return Stop(absl::DeadlineExceededError("the pull's deadline has passed"));
  }
  if (state_ < State::kAsked) Moves();  // waiting here for a turn is not the owner's fault
  if (takes_bulk_turns()) moved_at_ = std::max(moved_at_, host_.bulk_moved_at());
  if (context_.loop.Now() >= moved_at_ + request_.patience) {
    return Stop(absl::DeadlineExceededError(
        absl::StrCat("nothing came from the owner for ", request_.patience.milliseconds(), " ms")));
  }
  ArmLimit();
}

uint32_t Pull::MillisecondsLeft() const {
  const int64_t left = (deadline_time_ - context_.loop.Now()).milliseconds();
  return static_cast<uint32_t>(std::clamp<int64_t>(left, 1, UINT32_MAX));
}

void Pull::Enter(State state) {
  CHECK(state > state_) << static_cast<int>(state_) << " -> " << static_cast<int>(state);
  state_ = state;
  switch (state) {
    case State::kOpening:
      return Record(base::Phase::kRegister);
    case State::kClosing:
      if (key_is_out()) Record(base::Phase::kRegister);
      return;
    case State::kAsked:
      return Record(base::Phase::kRequest);
    case State::kMoving:
      return Record(base::Phase::kData);
    case State::kWaiting:
    case State::kStopping:
    case State::kOver:
      return Record(base::Phase::kQueue);
  }
}

// ---- asking

void Pull::Start() {
  if (state_ != State::kWaiting || !host_.connection().up()) return;
  if (by_write() && !host_.write_has_turn()) return;
  if (!host_.peer_has_room()) {
    return Finish(absl::ResourceExhaustedError("as many transfers as the owner serves at once are under way"));
  }
  if (wants_bulk()) {
    if (absl::Status s = host_.connection().NeedBulk(); !s.ok()) return Finish(absl::UnavailableError(s.ToString()));
  }
  host_.TakeTurn(by_write());
  has_turn_ = true;
  began_ = context_.loop.Now();
  typical_ = request_.arrived == 0 && (!wants_bulk() || host_.connection().bulk().live_rails() != 0);
  if (!by_write() || memory_.empty()) return Ask();
  Enter(State::kOpening);
  WriteTarget& target = write_.target();
  const absl::Status s = target.Open(context_, host_.connection().bulk(), memory_.subspan(request_.arrived));
  if (!s.ok()) return Finish(s);
  if (target.opening()) {
    host_.connection().Wake();
  } else {
    Ask();
  }
}

void Pull::OnTarget() {
  if (state_ == State::kOpening && !write_.target().opening()) Ask();
  if (state_ == State::kClosing && write_.target().closed()) End();
}

void Pull::Ask() {
  number_ = host_.Bind(this, by_write());
  Header header;
  header.kind = MessageKind::kTransfer;
  header.protocol = asked_;
  if (request_.protocol != Protocol::kAuto || choice_.protocol != Protocol::kAuto) header.flags |= kProtocolGiven;
  header.deadline_ms = MillisecondsLeft();
  header.transfer = number_;
  header.size = request_.size;
  header.object = request_.id;
  header.generation = request_.generation;
  header.arrived = request_.arrived;
  header.remote = write_.target().Tell();
  Enter(State::kAsked);
  Moves();
  host_.connection().Send(header);
}

// ---- the owner's messages

absl::Status Pull::CheckSize(const ObjectSize& actual) const {
  if (actual == request_.size) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the owner's object has ", actual.data, " + ", actual.metadata,
                                                    " bytes, expected were ", request_.size.data, " + ",
                                                    request_.size.metadata));
}

absl::Status Pull::OnData(const Header& header) {
  const bool can_read = memory_.empty() || host_.connection().bulk().made();
  if (state_ != State::kAsked || asked_ != Protocol::kRead || !can_read) return OutOfTurn("DATA");
  Enter(State::kMoving);
  Moves();
  moved_by_ = Protocol::kRead;
  if (absl::Status s = CheckSize(header.size); !s.ok()) {
    Stop(s);
    return absl::OkStatus();
  }
  LimitTo(base::Milliseconds(header.deadline_ms));
  StartReading(header.remote);
  return absl::OkStatus();
}

void Pull::StartReading(const RemoteRange& source) {
  if (memory_.empty()) return EndIfComplete();
  RemoteRange rest = source;
  rest.address += request_.arrived;
  const absl::Status s =
      read_.Start(context_, host_.connection().bulk(), memory_.subspan(request_.arrived), rest, *this);
  if (!s.ok()) return Stop(s);
  host_.connection().Wake();
}

absl::Status Pull::OnChunk(const Message& message, CopyBudget& budget) {
  if (state_ == State::kStopping) {  // by write: an owner that sends chunks does not write
    if (by_write()) Finish(outcome_);
    return absl::OkStatus();
  }
  if (state_ == State::kAsked) {
    Enter(State::kMoving);
    moved_by_ = Protocol::kEager;
    downgraded_ = asked_ != Protocol::kEager;
    if (downgraded_) {
      ++context_.counters.downgrades;
      if (asked_ == Protocol::kWrite) host_.NotByWrite(number_);
      write_.target().Close();
    }
    if (absl::Status s = CheckSize(message.header.size); !s.ok()) {
      Stop(s);
      return absl::OkStatus();
    }
  }
  if (state_ != State::kMoving || moved_by_ != Protocol::kEager) return OutOfTurn("CHUNK");
  Moves();
  Record(base::Phase::kCopy);
  if (absl::Status s = eager_.Accept(message, budget); !s.ok()) return s;
  sink_->Moved(eager_.copied());
  Record(base::Phase::kData);
  EndIfComplete();
  return absl::OkStatus();
}

// Ends a write of an empty object.
absl::Status Pull::OnDone(const Header& header) {
  if (state_ == State::kStopping && by_write()) {
    Finish(outcome_);
    return absl::OkStatus();
  }
  if (state_ != State::kAsked || asked_ != Protocol::kWrite || header.protocol != Protocol::kWrite ||
      !memory_.empty()) {
    return OutOfTurn("DONE");
  }
  Enter(State::kMoving);
  moved_by_ = Protocol::kWrite;
  EndIfComplete();
  return absl::OkStatus();
}

absl::Status Pull::OnNote(const Note& note) {
  if (state_ != State::kAsked && state_ != State::kMoving && state_ != State::kStopping) return OutOfTurn("a note");
  if (absl::Status s = write_.OnNote(note, host_.connection().bulk().queue_pairs()); !s.ok()) return s;
  if (state_ == State::kStopping) {
    if (write_.complete()) Finish(outcome_);
    return absl::OkStatus();
  }
  if (state_ == State::kAsked) Enter(State::kMoving);
  BulkMoves();
  moved_by_ = Protocol::kWrite;
  EndIfComplete();
  return absl::OkStatus();
}

absl::Status Pull::OnProgress(const Header& header) {
  const uint64_t rest = memory_.size() - request_.arrived;
  if (!by_write() || header.offset <= written_ || header.offset >= rest || header.arrived > memory_.size()) {
    return OutOfTurn("PROGRESS");
  }
  written_ = header.offset;
  arrived_ = std::max(arrived_, header.arrived);
  sink_->Moved(request_.arrived + written_);
  BulkMoves();
  return absl::OkStatus();
}

void Pull::OnFail(const Header& header, const absl::Status& status) {
  if (key_is_out() && header.arrived <= memory_.size()) arrived_ = std::max(arrived_, header.arrived);
  if (state_ == State::kStopping) {
    if (by_write()) Finish(outcome_);
    return;
  }
  if (state_ == State::kMoving && moved_by_ == Protocol::kRead) return Stop(status);
  Finish(status);
}

void Pull::BulkMoves() {
  Moves();
  host_.BulkMovedAt(moved_at_);
}

void Pull::OnJobOver() {
  BulkMoves();
  read_.Close();
  if (state_ == State::kStopping) {
    SendCancel();
    return Finish(outcome_);
  }
  EndIfComplete();
}

// Ends the pull if all bytes are in place; by read the caller knows that.
void Pull::EndIfComplete() {
  if (moved_by_ == Protocol::kEager && !eager_.complete()) return;
  if (moved_by_ == Protocol::kWrite && !memory_.empty() && !write_.complete()) return;
  if (moved_by_ == Protocol::kRead) {
    Header header;
    header.kind = MessageKind::kDone;
    header.protocol = Protocol::kRead;
    header.transfer = number_;
    host_.connection().Send(header);
  }
  Finish(absl::OkStatus());
}

// ---- ending early

void Pull::Cancel() { Stop(absl::CancelledError("the pull was cancelled")); }

// Waits until nothing touches the memory.
void Pull::Stop(absl::Status status) {
  if (state_ >= State::kStopping) return;
  const bool asked = state_ >= State::kAsked;
  Enter(State::kStopping);
  outcome_ = std::move(status);
  if (host_.connection().broken()) return;  // OnBroken follows
  const bool reading = moved_by_ == Protocol::kRead && read_.Stop(host_.connection().bulk());
  if (!asked) return Finish(outcome_);
  if (!reading) SendCancel();  // else after the READs: the owner may then reuse its memory
  if (!reading && !key_is_out()) return Finish(outcome_);
  next_ = context_.loop.RunAfter(kDrainGrace, [this] { OnGrace(); });
}

void Pull::OnGrace() {
  if (by_write() && context_.RevokingProves()) return Finish(outcome_);
  if (by_write()) return host_.connection().Break(absl::UnavailableError("the owner of a write does not stop"));
  host_.connection().EndRequests(read_.job(), absl::UnavailableError("READs of a pull that has ended do not"));
}

void Pull::SendCancel() {
  Header header;
  header.kind = MessageKind::kCancel;
  header.transfer = number_;
  host_.connection().Send(header);
}

// The memory is out of use, but for keys to be revoked.
void Pull::Finish(absl::Status status) {
  if (state_ >= State::kClosing) return;
  Enter(State::kClosing);
  outcome_ = std::move(status);
  limit_.Cancel();
  read_.Close();
  write_.target().Close();
  if (wants_bulk()) host_.connection().BulkMoved();
  if (number_ != 0) host_.Unbind(number_, by_write());
  if (has_turn_) host_.GiveTurn(by_write());
  if (write_.target().closed()) return End();
  // Requests ahead of it may delay an invalidate.
  next_ = context_.loop.RunAfter(kDrainGrace, [this] {
    write_.target().Revoke();
    End();
  });
  host_.connection().Wake();
}

void Pull::End() {
  Enter(State::kOver);
  next_ = context_.loop.Post([this] { Conclude(); });
}

// Bytes in place from the start; after a failure never all, so that something is left to ask for.
uint64_t Pull::Arrived() const {
  const uint64_t all = memory_.size();
  if (outcome_.ok() || all == 0) return all;
  const uint64_t arrived = std::max({arrived_, eager_.copied(), request_.arrived + read_.arrived()});
  return std::min(arrived, all - 1);
}

void Pull::OnBroken(const absl::Status& status) {
  if (state_ == State::kStopping) Finish(outcome_);
  if (state_ < State::kStopping) Finish(status);
  Conclude();
}

void Pull::Conclude() {
  CHECK(write_.target().closed()) << "a peer could write into what is sealed";
  next_.Cancel();
  TransferReport report;
  report.protocol = moved_by_ == Protocol::kAuto ? asked_ : moved_by_;
  report.size = request_.size;
  report.elapsed = context_.loop.Now() - started_;
  report.downgraded = downgraded_;
  report.heard = host_.connection().heard();
  report.arrived = Arrived();
  const auto by = static_cast<uint32_t>(report.protocol);
  EndpointCounters& counters = context_.counters;
  if (outcome_.ok()) {
    ++counters.pulls_ok;
    ++counters.transfers_pulled[by];
    counters.bytes_pulled[by] += report.size.total() - request_.arrived;
  } else {
    ++counters.pulls_failed;
  }
  TellHowItEnded();
  context_.Record(base::TraceKind::kTransferEnd, by << 8 | static_cast<uint32_t>(outcome_.code()), report.size.total());
  context_.pulls.erase(id_);
  const std::unique_ptr<Sink> sink = std::move(sink_);
  const absl::Status outcome = std::move(outcome_);
  host_.Forget(this);  // deletes this
  sink->Done(outcome, report);
}

}  // namespace tokamak::transport

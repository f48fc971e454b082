#include "lib/transport/serve.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tokamak::transport {

Serve::Serve(Context& context, Host& host, PeerShares::Share& share, const Header& transfer)
    : context_(context),
      host_(host),
      share_(share),
      transfer_(transfer),
      pin_(context.next_pin++),
      eager_(context.loop, *this),
      granted_until_(context.loop.Now() +
                     std::min(base::Milliseconds(transfer.deadline_ms), context.options.serve_deadline)) {
  ++context_.serves;
  ++share_.serves;
  ++context_.counters.serves_started;
}

Serve::~Serve() {
  // First: unpinned memory may be another object's at once.
  read_.Close();
  write_.Close();
  if (pinned_) context_.source.Unpin(pin_);
  --share_.serves;
  --context_.serves;
}

void Serve::Start() {
  // The puller's time, and some to end in good order.
  deadline_ = context_.loop.RunAt(granted_until_ + kDrainGrace * 2, [this] { OnDeadline(); });
  context_.source.Pin({transfer_.object, transfer_.generation}, pin_,
                      [this](absl::StatusOr<PinnedObject> object) { OnPinned(std::move(object)); });
}

void Serve::OnPinned(absl::StatusOr<PinnedObject> object) {
  if (!object.ok()) {
    pinned_ = false;
    return Fail(object.status());
  }
  object_ = *object;
  if (absl::Status s = CheckSize(object_.size); !s.ok()) return Fail(s);
  const Protocol protocol = Choose(rest());
  if (protocol == Protocol::kRead && ServeRead()) return;
  if (protocol == Protocol::kWrite && ServeWrite()) return;
  ServeEager();
}

absl::Status Serve::CheckSize(const ObjectSize& actual) const {
  const ObjectSize& expected = transfer_.size;
  if (actual == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the object has ", actual.data, " + ", actual.metadata,
                                                    " bytes, expected were ", expected.data, " + ", expected.metadata));
}

// Takes the puller's; if only its policy chose, ours may make it eager.
Protocol Serve::Choose(uint64_t size) const {
  const bool given = (transfer_.flags & kProtocolGiven) != 0;
  if (!given && context_.options.policy.Choose(size) == Protocol::kEager) return Protocol::kEager;
  return transfer_.protocol;
}

void Serve::ServeEager() {
  state_ = State::kEager;
  if (transfer_.protocol != Protocol::kEager) ++context_.counters.downgrades;
  eager_.Open(transfer_.transfer, object_, transfer_.arrived);
  host_.connection().control().Add(&eager_);
  host_.connection().Wake();
}

// Returns false, having done nothing, if READs are not possible.
bool Serve::ServeRead() {
  if (!read_.Open(context_, host_.connection().bulk(), object_).ok()) return false;
  state_ = State::kReading;
  Header header;
  header.transfer = transfer_.transfer;
  const int64_t left = (granted_until_ - context_.loop.Now()).milliseconds();
  header.deadline_ms = static_cast<uint32_t>(std::clamp<int64_t>(left, 1, UINT32_MAX));
  read_.Describe(&header);
  host_.connection().Send(header);
  return true;
}

bool Serve::ServeWrite() {
  if (object_.size.total() > 0) {
    if (!host_.connection().NeedBulk().ok()) return false;
    const absl::Status s =
        write_.Start(context_, host_.connection().bulk(), {object_.address + transfer_.arrived, rest()},
                     transfer_.remote, transfer_.transfer, *this);
    if (!s.ok()) return false;
    state_ = State::kWriting;
    progress_ = context_.loop.RunAfter(kProgressInterval, [this] { TellProgress(); });
    host_.connection().Wake();
    return true;
  }
  Header header;
  header.kind = MessageKind::kDone;
  header.protocol = Protocol::kWrite;
  header.transfer = transfer_.transfer;
  host_.connection().Send(header);
  state_ = State::kWriting;
  End(true);
  return true;
}

// By write: bytes certainly in the puller's memory, from the object's start. A completed WRITE
// proves that only if devices acknowledge what they have placed: without drop_stops_transfers
// (iWARP) it is only sent.
uint64_t Serve::Arrived() const { return transfer_.arrived + (context_.RevokingProves() ? write_.arrived() : 0); }

// Reports what the puller cannot see, if something moved; bytes written again after a rail dropped
// out count, though the total does not grow.
void Serve::TellProgress() {
  if (state_ != State::kWriting) return;
  const uint64_t written = std::max(write_.BytesWritten(), told_ + 1);
  const bool moved = std::exchange(requests_told_, write_.job().requests_done) != write_.job().requests_done;
  if (moved && written < rest()) {
    told_ = written;
    Header header;
    header.kind = MessageKind::kProgress;
    header.transfer = transfer_.transfer;
    header.offset = written;
    header.arrived = Arrived();
    host_.connection().Send(header);
  }
  progress_ = context_.loop.RunAfter(kProgressInterval, [this] { TellProgress(); });
}

absl::Status Serve::OnDone(const Header& header) {
  if (state_ != State::kReading || header.protocol != Protocol::kRead) {
    return absl::InvalidArgumentError("DONE out of turn");
  }
  End(true);
  return absl::OkStatus();
}

void Serve::OnCancel() {
  const absl::Status cancelled = absl::CancelledError("cancelled by the puller");
  // A puller that opened its memory waits for our word.
  if (state_ == State::kWriting) return StopWriting(cancelled);
  if (state_ == State::kStopping) return;
  if (state_ == State::kPinning && transfer_.protocol == Protocol::kWrite) return Fail(cancelled);
  End(false);
}

void Serve::OnStreamOver() { End(true); }

void Serve::OnJobOver() {
  write_.Close();
  if (state_ == State::kStopping) return StoppedWriting();
  End(true);
}

void Serve::OnDeadline() {
  const absl::Status late = absl::DeadlineExceededError("the transfer's deadline has passed at the owner");
  switch (state_) {
    case State::kPinning:
    case State::kEager:
      return Fail(late);
    case State::kWriting:
      return StopWriting(late);
    // The deadline proves nothing: end what could still touch the object; OnBroken gives back the
    // pin.
    case State::kReading:
      return host_.connection().Break(late);
    case State::kStopping:
      return host_.connection().EndRequests(write_.job(), late);
  }
}

void Serve::StopWriting(absl::Status status) {
  state_ = State::kStopping;
  outcome_ = std::move(status);
  if (!write_.Stop(host_.connection().bulk())) return StoppedWriting();
  deadline_ = context_.loop.RunAfter(kDrainGrace, [this] { OnDeadline(); });
}

// The puller learns that its memory is its own again.
void Serve::StoppedWriting() {
  if (context_.RevokingProves()) return Fail(outcome_);
  if (write_.job().shares_open == 0) return End(true);  // all was written, as the notes say
  host_.connection().Break(absl::UnavailableError("a write was stopped"));
}

void Serve::Fail(const absl::Status& status) {
  Header header;
  header.kind = MessageKind::kFail;
  header.status = status.code();
  header.transfer = transfer_.transfer;
  if (state_ == State::kStopping) header.arrived = Arrived();
  const absl::string_view text = status.message().substr(0, kMaxFailText);
  host_.connection().Send(header, std::vector<uint8_t>(text.begin(), text.end()));
  End(false);
}

void Serve::End(bool ok) {
  EndpointCounters& counters = context_.counters;
  if (ok) {
    const Protocol by = state_ == State::kEager     ? Protocol::kEager
                        : state_ == State::kReading ? Protocol::kRead
                                                    : Protocol::kWrite;
    ++counters.serves_ok;
    ++counters.transfers_served[static_cast<size_t>(by)];
    counters.bytes_served[static_cast<size_t>(by)] += rest();
  } else {
    ++counters.serves_failed;
  }
  if (!host_.connection().broken()) host_.connection().control().Remove(&eager_);
  host_.Forget(this, transfer_.transfer);  // deletes this
}

}  // namespace tokamak::transport

#include "lib/transport/channels/control_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"

namespace tokamak::transport {
namespace {

uint32_t SendSlots(const EndpointOptions& options) {
  return std::min(options.receive_slots, ControlChannel::kMaxSendSlots);
}
static_assert(kMinReceiveSlots >= SendRing::kMinEntries, "as many send slots as receive slots make a ring");

}  // namespace

uint32_t ControlChannel::CompletionsFor(const EndpointOptions& options) {
  return SendSlots(options) + options.receive_slots;
}

absl::StatusOr<std::unique_ptr<ControlChannel>> ControlChannel::Create(Context& context, uint32_t rail,
                                                                       SharedCompletions::User& user) {
  std::unique_ptr<ControlChannel> channel(new ControlChannel(context, rail));
  if (absl::Status s = channel->Open(rail, user); !s.ok()) return s;
  return channel;
}

ControlChannel::ControlChannel(Context& context, uint32_t rail)
    : context_(context),
      slots_(*context.slots[rail]),
      ack_times_(context.ack_times[rail]),
      most_(context.options.receive_slots),
      send_slots_(SendSlots(context.options), kNoSlot),
      max_queued_(4 * size_t{context.options.max_transfers} + 4 * kMaxCallsServed),
      credits_(kMinFirstSlots, kMinFirstSlots, kMinFirstSlots),
      ring_(SendSlots(context.options)) {}

ControlChannel::~ControlChannel() {
  queue_pair_.reset();
  for (const uint32_t slot : receive_slots_) slots_.Give(slot);
  for (const uint32_t slot : send_slots_) {
    if (slot != kNoSlot) slots_.Give(slot);
  }
}

absl::Status ControlChannel::Open(uint32_t rail, SharedCompletions::User& user) {
  const uint32_t first = context_.options.first_slots;
  auto completions = context_.completions[rail]->Reserve(ring_.entries() + first, most_ - first);
  if (!completions.ok()) return completions.status();
  completions_ = *std::move(completions);
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = &completions_->queue();
  options.max_send_requests = ring_.entries();
  options.max_receive_requests = most_;
  options.may_be_made_later = true;
  options.max_inline = max_inline_ = std::min(context_.rails[rail].device.limits().max_inline, kMaxInline);
  auto queue_pair = context_.rails[rail].domain.CreateQueuePair(options);
  if (!queue_pair.ok()) return queue_pair.status();
  queue_pair_ = *std::move(queue_pair);
  completions_->Bind(*queue_pair_, user);
  while (window_ < first) {
    const auto slot = slots_.Take();
    if (!slot.ok()) return slot.status();
    AddReceive(*slot);
  }
  if (absl::Status s = Repost(); !s.ok()) return s;
  credits_.TakeOwed();  // in the hello
  return absl::OkStatus();
}

void ControlChannel::AddReceive(uint32_t slot) {
  receive_slots_.push_back(slot);
  released_.push_back(slot);
  ++window_;
}

void ControlChannel::OnPeerHello(const Hello& peer) {
  credits_ = Credits(peer.first_slots, peer.receive_slots, window_);
  max_message_ = std::min(slots_.size(), peer.slot_size);
}

absl::Status ControlChannel::SendHandshake(absl::Span<const uint8_t> message) {
  CHECK(!enabled_ && message.size() <= max_message_);
  if (!Claim()) return post_status_.ok() ? absl::ResourceExhaustedError("no credit for a handshake") : post_status_;
  ++handshake_credits_;
  credits_.TakeOwed();
  std::copy(message.begin(), message.end(), slots_.at(slot_));
  Post(message.size());
  Flush();
  return post_status_;
}

absl::StatusOr<absl::Span<const uint8_t>> ControlChannel::OnHandshake(uint32_t slot, uint32_t byte_count) {
  ++received_;
  if (absl::Status s = credits_.Grant(std::exchange(handshake_credits_, 0)); !s.ok()) return s;
  return absl::Span<const uint8_t>(slots_.at(slot), std::min(byte_count, slots_.size()));
}

void ControlChannel::Seal(security::SealedChannel channel) {
  CHECK(!enabled_);
  seal_ = std::move(channel);
  max_message_ -= security::kTagSize;
}

absl::Status ControlChannel::Send(const Header& header, std::vector<uint8_t> body) {
  if (queue_.size() >= max_queued_) {
    return absl::ResourceExhaustedError(absl::StrCat(queue_.size(), " messages wait for the peer to take them"));
  }
  queue_.Push({header, std::move(body)});
  return absl::OkStatus();
}

void ControlChannel::Probe() { probe_ = enabled_; }

void ControlChannel::Drain() {
  if (draining_ || drained()) return;
  draining_ = true;
  if (queue_.empty()) queue_.Push({});  // its completion proves all before it
}

absl::Status ControlChannel::Pump(CopyBudget& budget, bool* more) {
  if (!enabled_) return absl::OkStatus();
  while (post_status_.ok() && SendNext(budget, more)) probe_ = false;  // a message probes as well
  SendProbe();
  ReturnCredits();
  Flush();
  return post_status_;
}

// Sends queued messages first, then streams in turn. Returns false when none can leave now.
bool ControlChannel::SendNext(CopyBudget& budget, bool* more) {
  if (queue_.empty() && streams_.empty()) return false;
  if (queue_.empty() && !budget.Covers(max_message_)) {
    *more = true;
    return false;
  }
  if (!Claim()) return false;
  const absl::Span<uint8_t> space(slots_.at(slot_), max_message_);
  if (!queue_.empty()) {
    Outgoing next = queue_.Pop();
    next.header.credits = credits_.TakeOwed();
    if (!credits_.can_take() && more_waits()) next.header.flags |= kMoreSlots;
    Stage(EncodeMessage(next.header, next.body, space));
    return true;
  }
  Stream* stream = streams_.PopFront();
  Header header;
  const size_t body_size = stream->Next(&header, space.data() + kHeaderSize, max_body(), budget);
  header.credits = credits_.TakeOwed();
  if (!credits_.can_take() && (more_waits() || !stream->over())) header.flags |= kMoreSlots;
  EncodeHeader(header, body_size, space.data());
  Stage(kHeaderSize + body_size);
  if (stream->over()) {
    stream->OnOver();
  } else {
    streams_.PushBack(stream);
  }
  return true;
}

bool ControlChannel::Claim() {
  if (ring_.full()) return false;
  if (!credits_.can_take()) {
    if (!stalled_) ++context_.counters.credit_stalls;
    stalled_ = true;
    return false;
  }
  stalled_ = false;
  return TakeSlot() && credits_.Take();
}

// Returns false, with the reason in post_status_, if there is no slot.
bool ControlChannel::TakeSlot() {
  const auto slot = slots_.Take();
  if (slot.ok()) {
    slot_ = *slot;
  } else {
    post_status_ = slot.status();
  }
  return slot.ok();
}

void ControlChannel::ReturnCredits() {
  const bool due = credits_.return_due() && credits_.can_return();
  const bool rest = std::exchange(resting_, false) && OwesSpare() && credits_.can_take();
  if ((!due && !rest) || ring_.full() || !TakeSlot()) return;
  CHECK(credits_.TakeForReturn());
  // In a larger window credits come back with messages, or more at once.
  grow_ |= due && unanswered_ > 1;
  Header header;
  header.credits = credits_.TakeOwed();
  if (more_waits()) header.flags |= kMoreSlots;
  Stage(EncodeMessage(header, {}, {slots_.at(slot_), max_message_}));
}

void ControlChannel::SendProbe() {
  if (!std::exchange(probe_, false) || !credits_.can_probe() || ring_.full() || !TakeSlot()) return;
  CHECK(credits_.TakeForProbe());
  Header header;
  header.credits = credits_.TakeOwed();
  Stage(EncodeMessage(header, {}, {slots_.at(slot_), max_message_}));
}

bool ControlChannel::OwesSpare() const { return credits_.owed() > 0 && window_ > context_.options.first_slots; }

void ControlChannel::Rest() {
  resting_ = true;
  while (credits_.spare() > 0 && !more_waits() && !ring_.full() && TakeSlot() && credits_.Take()) {
    Header header;
    header.kind = MessageKind::kRelease;
    header.credits = credits_.TakeOwed();
    completion_asked_ |= credits_.spare() == 0;  // with the last, all slots come back
    Stage(EncodeMessage(header, {}, {slots_.at(slot_), max_message_}));
  }
  Flush();
}

void ControlChannel::Stage(size_t size) {
  if (seal_.has_value()) {
    size += security::kTagSize;
    const absl::Status sealed = seal_->Seal({}, {slots_.at(slot_), size});
    CHECK(sealed.ok()) << sealed;  // whoever gets a message that does not open ends the connection
  }
  Post(size);
}

void ControlChannel::Post(size_t size) {
  if (staged_count_ == kPostBatch) Flush();
  const uint32_t entry = ring_.Take();
  const uint32_t slot = std::exchange(slot_, kNoSlot);
  unanswered_ = 0;
  pieces_[staged_count_] = slots_.Piece(slot, static_cast<uint32_t>(size));
  verbs::SendRequest& request = staged_[staged_count_];
  request = {};
  request.id = RequestId{0, false, entry}.Pack();
  request.sges = absl::MakeConstSpan(&pieces_[staged_count_], 1);
  if (size <= max_inline_) {
    request.flags = request.flags | verbs::kInline;
    inline_slots_[inline_count_++] = slot;
  } else {
    send_slots_[entry] = slot;
  }
  if (ring_.signal_due() || draining_ || completion_asked_) {
    request.flags = request.flags | verbs::kSignaled;
    completion_asked_ = false;
    ++signaled_;
    if (timed_ == kNone) {
      timed_ = entry;
      timed_at_ = context_.loop.Now();
    }
  }
  ++staged_count_;
}

void ControlChannel::Flush() {
  if (staged_count_ == 0) return;
  const verbs::PostResult result = queue_pair_->PostSend(absl::MakeConstSpan(staged_.data(), staged_count_));
  staged_count_ = 0;
  while (inline_count_ > 0) slots_.Give(inline_slots_[--inline_count_]);
  if (!result.ok()) post_status_ = result.status;
}

absl::Status ControlChannel::OnSent(uint32_t entry) {
  const uint32_t oldest = ring_.oldest(), taken = ring_.taken();
  if (!ring_.Complete(entry)) {
    return absl::InternalError(absl::StrCat("the device completed send ", entry, ", which is not posted"));
  }
  for (uint32_t i = 0; i < taken - ring_.taken(); ++i) {
    const uint32_t slot = std::exchange(send_slots_[(oldest + i) % ring_.entries()], kNoSlot);
    if (slot != kNoSlot) slots_.Give(slot);
  }
  ++completed_;
  if (entry == timed_) {
    timed_ = kNone;
    const base::Time now = context_.loop.Now();
    ack_times_.Note(now, now - timed_at_);
  }
  if (drained()) draining_ = false;
  return absl::OkStatus();
}

absl::StatusOr<Message> ControlChannel::OnReceived(uint32_t slot, uint32_t byte_count) {
  ++received_;
  absl::Span<uint8_t> bytes(slots_.at(slot), std::min(byte_count, slots_.size()));
  if (seal_.has_value()) {
    const auto opened = seal_->Open({}, bytes);
    if (!opened.ok()) return opened.status();
    bytes = *opened;
  }
  auto message = DecodeMessage(bytes);
  if (!message.ok()) return message.status();
  const Header& header = message->header;
  if (absl::Status s = credits_.Grant(header.credits); !s.ok()) return s;
  grow_ |= (header.flags & kMoreSlots) != 0;
  given_up_ = header.kind == MessageKind::kRelease;
  resting_ |= given_up_;
  if (!given_up_ && header.kind != MessageKind::kCredit) ++unanswered_;
  if (given_up_ && window_ == context_.options.first_slots) {
    return absl::InvalidArgumentError(absl::StrCat("the peer gives up one of the first ", window_, " slots"));
  }
  return message;
}

void ControlChannel::Release(uint32_t slot) {
  const auto place = [&] { return std::find(receive_slots_.begin(), receive_slots_.end(), slot); };
  if (!std::exchange(given_up_, false)) {
    // Small windows move to the lowest blocks, to free those of a busy time.
    if (window_ == context_.options.first_slots && slots_.HasLower(slot)) {
      const auto lower = slots_.Take();
      CHECK(lower.ok()) << lower.status();
      slots_.Give(slot);
      slot = *place() = *lower;
    }
    return released_.push_back(slot);
  }
  receive_slots_.erase(place());
  slots_.Give(slot);
  credits_.SetOwn(--window_);
  completions_->Shrink(1);
}

absl::Status ControlChannel::Repost() {
  if (std::exchange(grow_, false)) GrowWindow();
  const verbs::PostResult result =
      PostReceives(*queue_pair_, released_, 0, [this](uint32_t slot) { return slots_.Piece(slot, slots_.size()); });
  if (!result.ok()) return result.status;
  credits_.Owe(static_cast<uint32_t>(released_.size()));
  released_.clear();
  return absl::OkStatus();
}

// As far as memory and completions allow. A failed attempt is not repeated at once, as the peer may
// ask with each message. The last slots are left to messages that leave: without these the
// connection ends.
void ControlChannel::GrowWindow() {
  const uint32_t wanted = std::min(window_ * kGrowth, most_);
  if (wanted == window_ || !completions_->Grow(wanted - window_)) return;
  std::vector<uint32_t> slots;
  while (slots.size() < wanted - window_) {
    const auto slot = slots_.TakeSpare();
    if (slot.ok()) {
      slots.push_back(*slot);
      continue;
    }
    LOG_EVERY_N(WARNING, 1000) << "a busy connection's window does not grow: " << slot.status();
    for (const uint32_t one : slots) slots_.Give(one);
    completions_->Shrink(wanted - window_);
    return;
  }
  for (const uint32_t slot : slots) AddReceive(slot);
  ++context_.counters.windows_grown;
  credits_.SetOwn(window_);
}

}  // namespace tokamak::transport

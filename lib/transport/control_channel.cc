#include "lib/transport/control_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

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
  const EndpointOptions& options = context.options;
  verbs::ProtectionDomain& domain = context.rails[rail].domain;
  auto sends = Slots::Create(domain, SendSlots(options), options.slot_size, verbs::kLocalRead);
  if (!sends.ok()) return sends.status();
  auto receives =
      Slots::Create(domain, options.receive_slots, options.slot_size, verbs::kLocalWrite | verbs::kRelaxedOrdering);
  if (!receives.ok()) return receives.status();
  std::unique_ptr<ControlChannel> channel(new ControlChannel(context, *std::move(sends), *std::move(receives)));
  if (absl::Status s = channel->Open(rail, user); !s.ok()) return s;
  return channel;
}

ControlChannel::ControlChannel(Context& context, Slots sends, Slots receives)
    : context_(context),
      sends_(std::move(sends)),
      receives_(std::move(receives)),
      max_queued_(4 * size_t{context.options.max_transfers} + 4 * kMaxCallsServed),
      credits_(kMinReceiveSlots, context.options.receive_slots),
      ring_(sends_.count()) {
  released_.reserve(receives_.count());
}

absl::Status ControlChannel::Open(uint32_t rail, SharedCompletions::User& user) {
  auto completions = context_.completions[rail]->Reserve(CompletionsFor(context_.options));
  if (!completions.ok()) return completions.status();
  completions_ = *std::move(completions);
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = &completions_->queue();
  options.max_send_requests = sends_.count();
  options.max_receive_requests = receives_.count();
  options.max_inline = max_inline_ = std::min(context_.rails[rail].device.limits().max_inline, kMaxInline);
  auto queue_pair = context_.rails[rail].domain.CreateQueuePair(options);
  if (!queue_pair.ok()) return queue_pair.status();
  queue_pair_ = *std::move(queue_pair);
  completions_->Bind(*queue_pair_, user);
  for (uint32_t slot = 0; slot < receives_.count(); ++slot) released_.push_back(slot);
  if (absl::Status s = Repost(); !s.ok()) return s;
  credits_.TakeOwed();  // the peer learns of these with the hello
  return absl::OkStatus();
}

void ControlChannel::OnPeerHello(const Hello& peer) {
  credits_ = Credits(peer.receive_slots, receives_.count());
  max_message_ = std::min(sends_.size(), peer.slot_size);
}

absl::Status ControlChannel::Send(const Header& header, std::vector<uint8_t> body) {
  if (queue_.size() >= max_queued_) {
    return absl::ResourceExhaustedError(absl::StrCat(queue_.size(), " messages wait for the peer to take them"));
  }
  queue_.Push({header, std::move(body)});
  return absl::OkStatus();
}

void ControlChannel::Probe() {
  if (enabled_ && queue_.empty() && credits_.can_take()) queue_.Push({});
}

void ControlChannel::Drain() {
  if (draining_ || drained()) return;
  draining_ = true;
  if (queue_.empty()) queue_.Push({});  // its completion proves all before it
}

absl::Status ControlChannel::Pump(CopyBudget& budget, bool* more) {
  if (!enabled_) return absl::OkStatus();
  while (SendNext(budget, more)) {
  }
  ReturnCredits();
  Flush();
  return post_status_;
}

// One message: what waits goes first, then the streams take turns. Returns false when nothing
// can leave now.
bool ControlChannel::SendNext(CopyBudget& budget, bool* more) {
  if (queue_.empty() && streams_.empty()) return false;
  if (queue_.empty() && !budget.Covers(max_message_)) {
    *more = true;
    return false;
  }
  if (!Claim()) return false;
  const uint32_t entry = ring_.Take();
  const absl::Span<uint8_t> space(sends_.at(entry), max_message_);
  if (!queue_.empty()) {
    Outgoing next = queue_.Pop();
    next.header.credits = credits_.TakeOwed();
    Stage(entry, EncodeMessage(next.header, next.body, space));
    return true;
  }
  Stream* stream = streams_.PopFront();
  Header header;
  const size_t body_size = stream->Next(&header, space.data() + kHeaderSize, max_body(), budget);
  header.credits = credits_.TakeOwed();
  EncodeHeader(header, body_size, space.data());
  Stage(entry, kHeaderSize + body_size);
  if (stream->over()) {
    stream->OnOver();
  } else {
    streams_.PushBack(stream);
  }
  return true;
}

// A slot of ours and a credit.
bool ControlChannel::Claim() {
  if (ring_.full()) return false;
  if (!credits_.Take()) {
    if (!stalled_) ++context_.counters.credit_stalls;
    stalled_ = true;
    return false;
  }
  stalled_ = false;
  return true;
}

void ControlChannel::ReturnCredits() {
  if (!credits_.return_due() || ring_.full() || !credits_.TakeForReturn()) return;
  const uint32_t entry = ring_.Take();
  Header header;
  header.credits = credits_.TakeOwed();
  Stage(entry, EncodeMessage(header, {}, absl::MakeSpan(sends_.at(entry), max_message_)));
}

void ControlChannel::Stage(uint32_t entry, size_t size) {
  if (staged_count_ == kPostBatch) Flush();
  pieces_[staged_count_] = sends_.Piece(entry, static_cast<uint32_t>(size));
  verbs::SendRequest& request = staged_[staged_count_];
  request = {};
  request.id = RequestId{0, false, entry}.Pack();
  request.sges = absl::MakeConstSpan(&pieces_[staged_count_], 1);
  if (size <= max_inline_) request.flags = request.flags | verbs::kInline;
  if (ring_.signal_due() || draining_ || completion_asked_) {
    request.flags = request.flags | verbs::kSignaled;
    completion_asked_ = false;
    ++signaled_;
  }
  ++staged_count_;
}

void ControlChannel::Flush() {
  if (staged_count_ == 0) return;
  const verbs::PostResult result = queue_pair_->PostSend(absl::MakeConstSpan(staged_.data(), staged_count_));
  staged_count_ = 0;
  if (!result.ok()) post_status_ = result.status;
}

absl::Status ControlChannel::OnSent(uint32_t entry) {
  if (ring_.Complete(entry)) {
    ++completed_;
    if (drained()) draining_ = false;
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("the device completed send ", entry, ", which is not posted"));
}

absl::StatusOr<Message> ControlChannel::OnReceived(uint32_t slot, uint32_t byte_count) {
  CHECK_LT(slot, receives_.count());
  ++received_;
  auto message = DecodeMessage({receives_.at(slot), std::min(byte_count, receives_.size())});
  if (!message.ok()) return message.status();
  if (absl::Status s = credits_.Grant(message->header.credits); !s.ok()) return s;
  return message;
}

absl::Status ControlChannel::Repost() {
  const verbs::PostResult result = PostReceives(*queue_pair_, receives_, released_, 0);
  if (!result.ok()) return result.status;
  credits_.Owe(static_cast<uint32_t>(released_.size()));
  released_.clear();
  return absl::OkStatus();
}

}  // namespace tokamak::transport

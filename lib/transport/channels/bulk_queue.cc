#include "lib/transport/channels/bulk_queue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/bytes.h"

namespace tokamak::transport {

absl::StatusOr<std::unique_ptr<BulkQueue>> BulkQueue::Create(const Rail& rail, SlotPool& notes,
                                                             SharedCompletions& completions,
                                                             SharedCompletions::User& user, Side side,
                                                             uint32_t number) {
  const auto slot = notes.Take();
  if (!slot.ok()) return slot.status();
  std::unique_ptr<BulkQueue> queue(new BulkQueue(rail, notes, *slot, side, number));
  if (absl::Status s = queue->MakeQueuePair(rail, completions, user); !s.ok()) return s;
  return queue;
}

BulkQueue::BulkQueue(const Rail& rail, SlotPool& notes, uint32_t slot, Side side, uint32_t number)
    : side_(side), number_(number), device_has_immediates_(rail.device.limits().immediate), notes_(notes), slot_(slot) {
  drained_.reserve(ReceivesFor(side));
}

BulkQueue::~BulkQueue() {
  queue_pair_.reset();
  notes_.Give(slot_);
  while (!asking_.empty()) asking_.PopFront();
  while (!windows_.empty()) windows_.PopFront()->OnQueueGone();
}

verbs::Sge BulkQueue::NoteAt(uint32_t index) const {
  verbs::Sge piece = notes_.Piece(slot_, kNoteSize);
  piece.address += index * kNoteSize;
  return piece;
}

absl::Status BulkQueue::MakeQueuePair(const Rail& rail, SharedCompletions& completions, SharedCompletions::User& user) {
  auto share = completions.Reserve(CompletionsFor(side_));
  if (!share.ok()) return share.status();
  completions_ = *std::move(share);
  verbs::QueuePairOptions options;
  options.send_queue = options.receive_queue = &completions_->queue();
  options.max_send_requests = kDepth;
  options.max_receive_requests = ReceivesFor(side_);
  options.may_be_made_later = true;
  options.max_inline = max_inline_ = std::min(rail.device.limits().max_inline, kNoteSize);
  options.remote_access = side_ == Side::kPuller ? verbs::kRemoteWrite : verbs::kRemoteRead;
  auto queue_pair = rail.domain.CreateQueuePair(options);
  if (!queue_pair.ok()) return queue_pair.status();
  queue_pair_ = *std::move(queue_pair);
  completions_->Bind(*queue_pair_, user);
  for (uint32_t entry = 0; entry < ReceivesFor(side_); ++entry) drained_.push_back(entry);
  return Repost();
}

void BulkQueue::OnPeerHello(const Hello& peer, uint32_t reads) {
  immediate_ = peer.immediate && device_has_immediates_;
  window_ = side_ == Side::kPuller ? std::min({uint32_t{peer.reads_served}, reads, kDepth}) : kWritesInFlight;
}

verbs::SendRequest& BulkQueue::Take(const Posted& posted) {
  if (staged_count_ == kPostBatch) Post();
  const uint32_t entry = ring_.Take();
  posted_[entry] = posted;
  verbs::SendRequest& request = staged_[staged_count_++];
  request = {};
  request.id = RequestId{queue(), false, entry}.Pack();
  request.flags = verbs::kSignaled;
  return request;
}

verbs::SendRequest& BulkQueue::Stage(BulkJob* job, uint32_t share, const verbs::Sge& piece) {
  verbs::SendRequest& request = Take({job, share, piece.length});
  pieces_[staged_count_ - 1] = piece;
  request.sges = absl::MakeConstSpan(&pieces_[staged_count_ - 1], 1);
  return request;
}

void BulkQueue::StageNote(BulkJob* job, uint32_t share, uint32_t value) {
  verbs::SendRequest& request = Stage(job, share, {});
  const verbs::Sge note = Sent(RequestId::Unpack(request.id).entry);
  base::StoreLittle<uint32_t>(note.address, value);
  pieces_[staged_count_ - 1] = note;
  if (max_inline_ >= kNoteSize) request.flags = request.flags | verbs::kInline;
}

// Stages windows first, as a pull waits for them.
void BulkQueue::StageWindows() {
  while (open_ && !asking_.empty() && !ring_.full()) {
    Window* const window = asking_.PopFront();
    window->Prepare(&Take({nullptr, 0, 0, window}));
    window->OnPosted();
  }
}

absl::Status BulkQueue::Flush() {
  Post();
  return post_status_;
}

void BulkQueue::Post() {
  if (staged_count_ == 0) return;
  const verbs::PostResult result = queue_pair_->PostSend(absl::MakeConstSpan(staged_.data(), staged_count_));
  staged_count_ = 0;
  if (!result.ok()) post_status_ = result.status;
}

// Its request may have left or not.
void BulkQueue::ForgetWindow(Window* window) {
  windows_.Remove(window);
  if (asking_.Listed(window)) asking_.Remove(window);
  for (Posted& posted : posted_) {
    if (posted.window == window) posted.window = nullptr;
  }
}

bool BulkQueue::Binds(uint32_t entry) const {
  return entry < posted_.size() && posted_[entry].window != nullptr && !posted_[entry].window->closing();
}

absl::StatusOr<BulkQueue::Posted> BulkQueue::OnSent(uint32_t entry) {
  if (!ring_.Complete(entry)) {
    return absl::InternalError(absl::StrCat("the device completed bulk request ", entry, ", which is not posted"));
  }
  return std::exchange(posted_[entry], {});
}

absl::StatusOr<uint32_t> BulkQueue::OnReceived(uint32_t entry, const verbs::Completion& completion) {
  drained_.push_back(entry);
  --receives_posted_;
  if (completion.has_invalidated) return absl::InvalidArgumentError("a note that takes back a key");
  if (completion.has_immediate) return completion.immediate;
  if (completion.byte_count != kNoteSize) {
    return absl::InvalidArgumentError(absl::StrCat("a note of ", completion.byte_count, " bytes"));
  }
  const uint32_t value = base::LoadLittle<uint32_t>(Received(entry).address);
  if (value == Note::kGreeting && !failed_) open_ = true;
  return value;
}

absl::Status BulkQueue::Repost() {
  if (failed_) return absl::OkStatus();
  const verbs::PostResult result =
      PostReceives(*queue_pair_, drained_, queue(), [this](uint32_t entry) { return Received(entry); });
  receives_posted_ += static_cast<uint32_t>(result.accepted);
  if (!result.ok()) return result.status;
  drained_.clear();
  return absl::OkStatus();
}

void BulkQueue::Fail() {
  open_ = false;
  failed_ = true;
  // If refused, the grace ends it.
  queue_pair_->Modify(verbs::QueuePairState::kError).IgnoreError();
}

// Stays in posted_, as it may not have been done. Ignores an unknown one.
void BulkQueue::OnFlushed(bool receive, uint32_t entry) {
  if (receive) {
    --receives_posted_;
  } else {
    static_cast<void>(ring_.Complete(entry));
  }
}

}  // namespace tokamak::transport

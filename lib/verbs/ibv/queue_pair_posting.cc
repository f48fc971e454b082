// How requests get to the provider, and back where it does not take them.
#include <glog/logging.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/verbs/ibv/errors.h"
#include "lib/verbs/ibv/queue_pair.h"

namespace tokamak::verbs::ibv {

PostResult IbvQueuePair::PostSend(absl::Span<const SendRequest> requests) {
  PostResult result;
  const QueuePairState now = state_.load(std::memory_order_relaxed);
  if (now != QueuePairState::kReadyToSend && now != QueuePairState::kError) {
    result.status = absl::FailedPreconditionError(absl::StrCat("a queue pair in ", ToString(now), " cannot send"));
    return result;
  }
  NoticeError();
  if (gate_ != nullptr && !FlushesHere()) return PostThroughGate(requests);
  const Limits& limits = context().limits();
  SendBatch batch;
  for (const SendRequest& request : requests) {
    absl::Status status = CheckSend(request, limits, bounds_);
    if (status.ok() && (request.opcode == Opcode::kBindWindow || !batch.HasRoomFor(request.sges.size()))) {
      status = PostBatch(&batch, &result);
    }
    if (status.ok() && sends_.room() == batch.size()) status = QueueFull(sends_.depth());
    if (status.ok() && request.opcode == Opcode::kBindWindow) {
      status = PostBind(request, &result);
    } else if (status.ok()) {
      AddSend(request, sends_.Note(static_cast<uint32_t>(batch.size()), request.id), /*never_none=*/false, &batch);
    }
    if (!status.ok()) {
      result.status = std::move(status);
      break;
    }
  }
  if (absl::Status status = PostBatch(&batch, &result); !status.ok()) result.status = std::move(status);
  return result;
}

// What waits is accepted: it is refused by nobody later, but flushed if the queue pair ends first.
PostResult IbvQueuePair::PostThroughGate(absl::Span<const SendRequest> requests) {
  PostResult result;
  for (const SendRequest& request : requests) {
    result.status = CheckSend(request, context().limits(), bounds_);
    if (result.status.ok() && sends_.room() == 0) result.status = QueueFull(sends_.depth());
    if (!result.status.ok()) break;
    gate_->Add(request, sends_.Note(0, request.id, TellingOf(request)));
    sends_.Commit(1);
    ++result.accepted;
  }
  LetThrough();
  return result;
}

// Gives the provider what may pass the gate.
void IbvQueuePair::LetThrough() {
  const Quirks& quirks = context().quirks();
  SendBatch batch;
  while (gate_->Next() != nullptr) {
    for (const ReadGate::Waiting* next; (next = gate_->Next()) != nullptr; gate_->Pass()) {
      const SendRequest& request = next->request;
      if (!batch.HasRoomFor(std::max<size_t>(request.sges.size(), 1))) break;
      ibv_send_wr& to = AddSend(request, next->position, quirks.needs_a_piece, &batch);
      to.send_flags &= ~static_cast<unsigned int>(IBV_SEND_FENCE);
      if (sends_.telling(next->position) == Telling::kNothing) to.send_flags |= IBV_SEND_SIGNALED;
      if (quirks.garbles_empty_reads && IsEmptyRead(request)) to.opcode = IBV_WR_RDMA_WRITE;
    }
    ibv_send_wr* bad = batch.first();
    const int error = ibv_post_send(queue_pair_, batch.first(), &bad);
    const bool refused = batch.Accepted(error, bad) < batch.size();
    batch.Clear();
    if (!refused) continue;
    // It was told of no more than it has room for, so it has ended, or is broken.
    LOG(ERROR) << "ibv_post_send of queue pair " << number_ << ": " << std::strerror(std::abs(error));
    TellError();
    Enter(QueuePairState::kError);
  }
  AwaitReads(!gate_->empty());
}

void IbvQueuePair::AwaitReads(bool awaits) {
  if (awaits == awaits_reads_) return;
  awaits_reads_ = awaits;
  sends_done_->Await(awaits);
}

// Where sends pass a gate.
Telling IbvQueuePair::TellingOf(const SendRequest& request) const {
  const Quirks& quirks = context().quirks();
  if (quirks.garbles_empty_reads && IsEmptyRead(request)) return Telling::kRead;
  if ((request.flags & kSignaled) != 0) return Telling::kAsIs;
  if (request.opcode == Opcode::kRead) return Telling::kNothing;  // the gate waits for it
  uint64_t length = 0;
  for (const Sge& sge : request.sges) length += sge.length;
  const bool borrowed = quirks.borrows_unsignaled_from != 0 && length >= quirks.borrows_unsignaled_from;
  return borrowed ? Telling::kNothing : Telling::kAsIs;
}

bool IbvQueuePair::Arrived(const ibv_wc& done) {
  if ((done.wr_id & kReceiveMark) != 0 || !sends_.Holds(done.wr_id)) return false;
  if (done.status != IBV_WC_SUCCESS) {
    if (gate_ != nullptr) gate_->Close();
    AwaitReads(false);
    return false;
  }
  if (gate_ != nullptr && done.opcode == IBV_WC_RDMA_READ) {
    gate_->ReadCame();
    LetThrough();
  }
  return sends_.telling(done.wr_id) == Telling::kNothing;
}

// A batch of its own: the key after it counts for the next one, which may bind the same window again.
absl::Status IbvQueuePair::PostBind(const SendRequest& request, PostResult* result) {
  auto* const window = dynamic_cast<IbvMemoryWindow*>(request.bind.window);
  const auto* const region = dynamic_cast<const IbvMemoryRegion*>(request.bind.region);
  if (window == nullptr || region == nullptr || &window->domain()->context() != &context() ||
      &region->domain()->context() != &context()) {
    return absl::InvalidArgumentError("a bind needs a window and a region of its queue pair's device");
  }
  SendBatch batch;
  ibv_send_wr& to = AddSend(request, sends_.Note(0, request.id), /*never_none=*/false, &batch);
  if (absl::Status s = window->PrepareBind(request, life_, &to); !s.ok()) return s;
  if (absl::Status s = PostBatch(&batch, result); !s.ok()) return s;
  window->Posted(to.bind_mw.rkey);
  return absl::OkStatus();
}

PostResult IbvQueuePair::PostReceive(absl::Span<const ReceiveRequest> requests) {
  PostResult result;
  if (state_.load(std::memory_order_relaxed) == QueuePairState::kReset) {
    result.status = absl::FailedPreconditionError("a queue pair in Reset takes no receives");
    return result;
  }
  if (shared_ != nullptr) {
    result.status = absl::InvalidArgumentError("the receives of this queue pair are those of its shared queue");
    return result;
  }
  NoticeError();
  const Limits& limits = context().limits();
  const bool never_none = context().quirks().needs_a_piece;
  ReceiveBatch batch;
  for (const ReceiveRequest& request : requests) {
    absl::Status status = CheckReceive(request, limits, bounds_);
    if (status.ok() && !batch.HasRoomFor(std::max<size_t>(request.sges.size(), 1))) {
      status = PostBatch(&batch, &result);
    }
    if (status.ok() && receives_.room() == batch.size()) status = QueueFull(receives_.depth());
    if (!status.ok()) {
      result.status = std::move(status);
      break;
    }
    const uint64_t position = receives_.Note(static_cast<uint32_t>(batch.size()), request.id);
    AddReceive(request, kReceiveMark | position, never_none, &batch);
  }
  if (absl::Status status = PostBatch(&batch, &result); !status.ok()) result.status = std::move(status);
  // Not every provider looks for receives that come after the end (rxe): told again, it does.
  if (result.accepted > 0 && state_.load() == QueuePairState::kError && !FlushesHere()) TellError();
  return result;
}

absl::Status IbvQueuePair::PostBatch(SendBatch* batch, PostResult* result) {
  if (batch->empty()) return absl::OkStatus();
  ibv_send_wr* bad = batch->first();
  const int error = FlushesHere() ? ENOTCONN : ibv_post_send(queue_pair_, batch->first(), &bad);
  const size_t wanted = batch->size();
  const size_t accepted = batch->Accepted(error, bad);
  batch->Clear();
  return Posted(error, wanted, accepted, /*receives=*/false, result);
}

absl::Status IbvQueuePair::PostBatch(ReceiveBatch* batch, PostResult* result) {
  if (batch->empty()) return absl::OkStatus();
  ibv_recv_wr* bad = batch->first();
  const int error = FlushesHere() ? ENOTCONN : ibv_post_recv(queue_pair_, batch->first(), &bad);
  const size_t wanted = batch->size();
  const size_t accepted = batch->Accepted(error, bad);
  batch->Clear();
  return Posted(error, wanted, accepted, /*receives=*/true, result);
}

// What the provider did not take: where the queue pair has ended it comes back flushed all the same, otherwise it is refused.
absl::Status IbvQueuePair::Posted(int error, size_t wanted, size_t accepted, bool receives, PostResult* result) {
  WorkRing& ring = receives ? receives_ : sends_;
  ring.Commit(static_cast<uint32_t>(accepted));
  result->accepted += accepted;
  if (accepted == wanted) return absl::OkStatus();
  if (state_.load() != QueuePairState::kError) {
    return ErrnoStatus(error, receives ? "ibv_post_recv" : "ibv_post_send");
  }
  CompletionCore& done = receives ? *receives_done_ : *sends_done_;
  for (size_t i = accepted; i < wanted; ++i) {
    done.AddFlush(number_, ring.posted() | (receives ? kReceiveMark : 0));
    ring.Commit(1);
  }
  result->accepted += wanted - accepted;
  return absl::OkStatus();
}

// iWARP's queue pairs take nothing once they have ended.
bool IbvQueuePair::FlushesHere() const {
  return context().link() == LinkKind::kIwarp && state_.load(std::memory_order_relaxed) == QueuePairState::kError;
}

}  // namespace tokamak::verbs::ibv

#include "lib/transport/bulk_channel.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "lib/base/bytes.h"

namespace tokamak::transport {

uint32_t BulkChannel::CompletionsFor(Side side, uint32_t queue_pairs) {
  return queue_pairs * (kDepth + (side == Side::kPuller ? kNotes : kGreetings));
}

absl::StatusOr<std::unique_ptr<BulkChannel>> BulkChannel::Create(Context& context, verbs::CompletionQueue& completions,
                                                                 Side side, uint32_t queue_pairs) {
  const uint32_t receives_each = side == Side::kPuller ? kNotes : kGreetings;
  auto sends = Slots::Create(context.domain, kDepth * queue_pairs, kNoteSize, verbs::kLocalRead);
  if (!sends.ok()) return sends.status();
  auto receives = Slots::Create(context.domain, receives_each * queue_pairs, kNoteSize, verbs::kLocalWrite);
  if (!receives.ok()) return receives.status();
  std::unique_ptr<BulkChannel> channel(new BulkChannel(context, side, *std::move(sends), *std::move(receives)));
  if (absl::Status s = channel->Open(completions, queue_pairs); !s.ok()) return s;
  return channel;
}

BulkChannel::BulkChannel(Context& context, Side side, Slots sends, Slots receives)
    : context_(context), side_(side), sends_(std::move(sends)), receives_(std::move(receives)) {}

absl::Status BulkChannel::Open(verbs::CompletionQueue& completions, uint32_t queue_pairs) {
  verbs::QueuePairOptions options;
  options.send_queue = &completions;
  options.receive_queue = &completions;
  options.max_send_requests = kDepth;
  options.max_receive_requests = receives_each();
  options.max_inline = max_inline_ = std::min(context_.device.limits().max_inline, kNoteSize);
  options.remote_access = side_ == Side::kPuller ? verbs::kRemoteWrite : verbs::kRemoteRead;
  queues_ = std::vector<Queue>(queue_pairs);
  for (Queue& queue : queues_) {
    auto queue_pair = context_.domain.CreateQueuePair(options);
    if (!queue_pair.ok()) return queue_pair.status();
    queue.queue_pair = *std::move(queue_pair);
    for (uint32_t entry = 0; entry < receives_each(); ++entry) queue.drained.push_back(entry);
  }
  return Repost();
}

void BulkChannel::Meet(const Hello& peer) {
  immediate_ = peer.immediate && context_.device.limits().immediate;
  const uint32_t reads = std::min<uint32_t>(peer.reads_served, context_.options.reliability.reads_outstanding);
  window_ = side_ == Side::kPuller ? std::min(reads, kDepth) : kWritesInFlight;
}

void BulkChannel::Enable() {
  enabled_ = true;
  for (uint32_t q = 0; side_ == Side::kPuller && q < queues_.size(); ++q) {
    StageNote(q, nullptr, Note::kGreeting);
    queues_[q].open = true;
  }
}

void BulkChannel::Add(BulkJob* job) {
  DCHECK_GT(job->size, 0u);
  job->first_queue = next_first_queue_;
  next_first_queue_ = (next_first_queue_ + 1) % static_cast<uint32_t>(queues_.size());
  ready_.PushBack(job);
}

bool BulkChannel::Stop(BulkJob* job) {
  job->stopped = true;
  if (ready_.Listed(job)) ready_.Remove(job);
  return job->in_flight > 0;
}

absl::Status BulkChannel::Pump() {
  if (!enabled_) return absl::OkStatus();
  for (bool progress = true; progress && AnyRoom();) {
    progress = false;
    // A pass ends where the room ends, so that the next one starts with the job that did not come to its turn.
    for (size_t turns = ready_.size(); turns > 0 && AnyRoom(); --turns) {
      BulkJob* job = ready_.PopFront();
      progress |= PostNext(job);
      if (job->posted < job->size) ready_.PushBack(job);
    }
  }
  for (uint32_t q = 0; q < queues_.size(); ++q) Flush(q);
  return post_status_;
}

// The job's next chunk, if its window and that of the queue pair whose turn it is allow.
bool BulkChannel::PostNext(BulkJob* job) {
  const uint64_t stripes = queues_.size();
  const auto q = static_cast<uint32_t>((job->first_queue + job->chunks_posted) % stripes);
  if (job->in_flight >= context_.options.chunks_in_flight || !HasRoom(queues_[q])) return false;

  const uint64_t chunk = context_.options.chunk_size;
  const auto length = static_cast<uint32_t>(std::min(chunk, job->size - job->posted));
  verbs::SendRequest& request = Stage(q, job, {job->local + job->posted, length, job->lkey});
  request.opcode = job->opcode;
  request.remote_address = job->remote + job->posted;
  request.rkey = job->rkey;
  const uint64_t chunks = (job->size + chunk - 1) / chunk;
  const bool last_on_queue = job->chunks_posted + stripes >= chunks;
  job->posted += length;
  ++job->chunks_posted;
  if (job->opcode != verbs::Opcode::kWrite || !last_on_queue) return true;

  const Note note{job->number & Note::kNumberMask, static_cast<uint32_t>(std::min(stripes, chunks))};
  if (immediate_) {
    request.opcode = verbs::Opcode::kWriteWithImm;
    request.immediate = note.Pack();
  } else {
    StageNote(q, job, note.Pack());
  }
  return true;
}

bool BulkChannel::AnyRoom() const {
  return std::any_of(queues_.begin(), queues_.end(), [this](const Queue& queue) { return HasRoom(queue); });
}

// Every bulk request is signaled: a chunk is large, and its completion lets the next one go.
verbs::SendRequest& BulkChannel::Stage(uint32_t q, BulkJob* job, const verbs::Sge& piece) {
  Queue& queue = queues_[q];
  if (queue.staged_count == kBatch) Flush(q);
  const uint32_t entry = queue.ring.Take();
  queue.jobs[entry] = job;
  if (job != nullptr) ++job->in_flight;
  queue.pieces[queue.staged_count] = piece;
  verbs::SendRequest& request = queue.staged[queue.staged_count];
  request = {};
  request.id = RequestId{static_cast<uint8_t>(q + 1), false, entry}.Pack();
  request.flags = verbs::kSignaled;
  request.sges = absl::MakeConstSpan(&queue.pieces[queue.staged_count], 1);
  ++queue.staged_count;
  return request;
}

void BulkChannel::StageNote(uint32_t q, BulkJob* job, uint32_t value) {
  verbs::SendRequest& request = Stage(q, job, {});
  const uint32_t slot = q * kDepth + RequestId::Unpack(request.id).entry;
  base::StoreLittle<uint32_t>(sends_.at(slot), value);
  queues_[q].pieces[queues_[q].staged_count - 1] = sends_.Piece(slot, kNoteSize);
  if (max_inline_ >= kNoteSize) request.flags = request.flags | verbs::kInline;
}

void BulkChannel::Flush(uint32_t q) {
  Queue& queue = queues_[q];
  if (queue.staged_count == 0) return;
  const verbs::PostResult result =
      queue.queue_pair->PostSend(absl::MakeConstSpan(queue.staged.data(), queue.staged_count));
  queue.staged_count = 0;
  if (!result.ok()) post_status_ = result.status;
}

absl::Status BulkChannel::OnSent(uint32_t q, uint32_t entry) {
  Queue& queue = queues_[q];
  if (!queue.ring.Complete(entry)) {
    return absl::InternalError(absl::StrCat("the device completed bulk request ", entry, ", which is not posted"));
  }
  BulkJob* job = std::exchange(queue.jobs[entry], nullptr);
  if (job == nullptr) return absl::OkStatus();
  --job->in_flight;
  ++job->requests_done;
  const bool over = job->in_flight == 0 && (job->stopped || job->posted == job->size);
  over ? job->owner->OnJobOver() : job->owner->OnJobProgress();
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> BulkChannel::OnReceived(uint32_t q, uint32_t entry, const verbs::Completion& completion) {
  queues_[q].drained.push_back(entry);
  if (completion.has_immediate) return completion.immediate;
  if (completion.byte_count != kNoteSize) {
    return absl::InvalidArgumentError(absl::StrCat("a note of ", completion.byte_count, " bytes"));
  }
  const uint32_t value = base::LoadLittle<uint32_t>(receives_.at(q * receives_each() + entry));
  if (value == Note::kGreeting) queues_[q].open = true;
  return value;
}

absl::Status BulkChannel::Repost() {
  for (uint32_t q = 0; q < queues_.size(); ++q) {
    for (uint32_t entry : queues_[q].drained) {
      const verbs::Sge piece = receives_.Piece(q * receives_each() + entry, kNoteSize);
      const verbs::ReceiveRequest request{RequestId{static_cast<uint8_t>(q + 1), true, entry}.Pack(),
                                          absl::MakeConstSpan(&piece, 1)};
      if (auto result = queues_[q].queue_pair->PostReceive(absl::MakeConstSpan(&request, 1)); !result.ok()) {
        return result.status;
      }
    }
    queues_[q].drained.clear();
  }
  return absl::OkStatus();
}

}  // namespace tokamak::transport

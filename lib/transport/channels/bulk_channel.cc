#include "lib/transport/channels/bulk_channel.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::transport {

using Share = BulkJob::Share;

BulkChannel::BulkChannel(Context& context, Side side, const Shape& shape, const verbs::Address& peer)
    : context_(context), side_(side), peer_(peer), shape_(shape), queues_(queue_pairs()) {}

absl::Status BulkChannel::Make(uint32_t rail, SharedCompletions::User& user) {
  for (uint32_t q = rail * shape_.each; q < (rail + 1) * shape_.each; ++q) {
    auto queue =
        BulkQueue::Create(context_.rails[rail], *context_.notes[rail], *context_.completions[rail], user, side_, q);
    if (!queue.ok()) return queue.status();
    queues_[q] = *std::move(queue);
  }
  return absl::OkStatus();
}

uint32_t BulkChannel::max_writes() const {
  return shape_.rails == 1 ? BulkQueue::kNotes : BulkQueue::kNotes / (2 * queue_pairs());
}
static_assert(BulkQueue::kNotes / 4 <= kMaxWantedWrites && BulkQueue::kNotes / (2 * kMaxBulkQueuePairs) > 0,
              "with two shares or more, all writes can be named; and there is room for one");

void BulkChannel::OnPeerHello(uint32_t q, const Hello& peer) {
  queues_[q]->OnPeerHello(peer, context_.options.reliability.reads_outstanding);
}

void BulkChannel::Enable(uint32_t rail) {
  if (rail == shape_.primary) enabled_ = true;
  for (uint32_t q = rail * shape_.each; side_ == Side::kPuller && q < (rail + 1) * shape_.each; ++q) {
    queues_[q]->StageNote(nullptr, 0, Note::kGreeting);
    queues_[q]->Open();
  }
}

uint32_t BulkChannel::live_rails() const {
  uint32_t rails = 1u << shape_.primary;
  for (uint32_t rail = 0; rail < shape_.rails; ++rail) {
    const auto begin = queues_.begin() + rail * shape_.each;
    const auto open = [](const std::unique_ptr<BulkQueue>& queue) { return queue != nullptr && queue->open(); };
    if (rail != shape_.primary && std::all_of(begin, begin + shape_.each, open)) rails |= 1u << rail;
  }
  return rails;
}

bool BulkChannel::Usable(uint32_t q, const BulkJob& job) const {
  const uint32_t rail = RailOfQueue(q);
  if ((job.rails >> rail & 1) == 0 || queues_[q] == nullptr) return false;
  return rail == shape_.primary || queues_[q]->open();
}

uint32_t BulkChannel::NextQueueFor(const BulkJob& job) {
  CHECK(made()) << "its queue pairs are made first, and can always be chosen";
  uint32_t q = next_queue_;
  while (!Usable(q, job)) q = (q + 1) % queue_pairs();
  next_queue_ = (q + 1) % queue_pairs();
  return q;
}

uint64_t BulkChannel::ChunkNow() const {
  const uint64_t most = context_.options.chunk_size;
  if (!context_.lossy_paths.Has(peer_.ip, context_.loop.Now())) return most;
  return std::min(most, uint64_t{kLossyPathPackets} * packet_);
}

void BulkChannel::Add(BulkJob* job) {
  DCHECK_GT(job->size, 0u);
  CHECK((job->rails >> shape_.primary & 1) != 0) << "every peer has a key of the primary rail";
  job->chunk = ChunkNow();
  const uint64_t chunks = (job->size + job->chunk - 1) / job->chunk;
  uint32_t usable = 0;
  for (uint32_t q = 0; q < queue_pairs(); ++q) usable += Usable(q, *job);
  job->share_count = static_cast<uint32_t>(std::min<uint64_t>(usable, chunks));
  job->shares_open = job->share_count;
  for (uint32_t s = 0; s < job->share_count; ++s) {
    Share& share = job->shares[s];
    share.queue = static_cast<uint8_t>(NextQueueFor(*job));
    share.chunks = (chunks - s + job->share_count - 1) / job->share_count;
  }
  // If all have a share, the next job begins with another: its first share may have a chunk more.
  if (job->share_count == usable && usable > 1) next_queue_ = (next_queue_ + 1) % queue_pairs();
  job->chunks_to_post = chunks;
  jobs_.PushBack(job);
  ready_.PushBack(job);
}

BulkQueue* BulkChannel::QueueForWindows(uint32_t rail) {
  if (shape_.each != 1 || !Has(rail) || !queues_[rail]->open()) return nullptr;
  return queues_[rail].get();
}

void BulkChannel::OnBindFailed(uint32_t q, uint32_t entry) {
  if (queues_[q]->Binds(entry)) context_.windows[RailOfQueue(q)]->GiveUp();
}

bool BulkChannel::Stop(BulkJob* job) {
  job->stopped = true;
  if (ready_.Listed(job)) ready_.Remove(job);
  if (job->in_flight > 0) return true;
  if (jobs_.Listed(job)) jobs_.Remove(job);
  return false;
}

BulkChannel::Trouble BulkChannel::Pump() {
  if (!enabled_) return {};
  for (const std::unique_ptr<BulkQueue>& queue : queues_) {
    if (queue != nullptr) queue->StageWindows();
  }
  for (bool progress = true; progress && AnyRoom();) {
    progress = false;
    // No room ends the pass: the next one starts with the job whose turn it is.
    for (size_t turns = ready_.size(); turns > 0 && AnyRoom(); --turns) {
      BulkJob* job = ready_.PopFront();
      progress |= PostNext(job);
      if (job->chunks_to_post > 0) ready_.PushBack(job);
    }
  }
  Trouble trouble;
  for (uint32_t q = 0; q < queues_.size(); ++q) {
    if (queues_[q] == nullptr) continue;
    if (absl::Status s = queues_[q]->Flush(); !s.ok()) trouble = {std::move(s), RailOfQueue(q)};
  }
  return trouble;
}

bool BulkChannel::AnyRoom() const {
  return std::any_of(queues_.begin(), queues_.end(), [](const auto& q) { return q != nullptr && q->HasRoom(); });
}

// Posts the next chunk of the first share in turn with room.
bool BulkChannel::PostNext(BulkJob* job) {
  if (job->in_flight >= context_.options.chunks_in_flight) return false;
  for (uint32_t looked = 0; looked < job->share_count; ++looked) {
    const uint32_t s = job->next_share;
    job->next_share = s + 1 < job->share_count ? s + 1 : 0;
    const Share& share = job->shares[s];
    if (share.state != Share::State::kOpen || share.posted == share.chunks) continue;
    if (!Has(share.queue) || !queues_[share.queue]->HasRoom()) continue;
    Post(job, s);
    return true;
  }
  return false;
}

void BulkChannel::Post(BulkJob* job, uint32_t s) {
  Share& share = job->shares[s];
  BulkQueue& queue = *queues_[share.queue];
  const uint32_t rail = RailOfQueue(share.queue);
  const uint64_t at = (share.posted * job->share_count + s) * job->chunk;
  const auto length = static_cast<uint32_t>(std::min(job->chunk, job->size - at));
  verbs::SendRequest& request = queue.Stage(job, s, {job->local + at, length, job->lkeys[rail]});
  request.opcode = job->opcode;
  request.remote_address = job->remote + at;
  request.rkey = job->rkeys[rail];
  ++share.posted;
  ++share.in_flight;
  ++job->in_flight;
  --job->chunks_to_post;
  if (job->opcode != verbs::Opcode::kWrite || share.posted < share.chunks) return;

  const Note note{static_cast<uint32_t>(job->transfer) & Note::kNumberMask, s, job->share_count};
  if (queue.immediate()) {
    request.opcode = verbs::Opcode::kWriteWithImm;
    request.immediate = note.Pack();
  } else {
    queue.StageNote(job, s, note.Pack());
    ++share.in_flight;
    ++job->in_flight;
  }
}

absl::Status BulkChannel::OnSent(uint32_t q, uint32_t entry) {
  auto posted = queues_[q]->OnSent(entry);
  if (!posted.ok()) return posted.status();
  if (posted->window != nullptr) posted->window->OnDone();
  BulkJob* job = posted->job;
  if (job == nullptr) return absl::OkStatus();
  Share& share = job->shares[posted->share];
  context_.counters.rail_bytes[RailOfQueue(q)] += posted->bytes;
  --job->in_flight;
  --share.in_flight;
  ++job->requests_done;
  job->bytes_done += posted->bytes;
  if (posted->bytes > 0) ++share.done;
  if (share.in_flight == 0 && share.posted == share.chunks) {
    share.state = Share::State::kComplete;
    --job->shares_open;
  }
  if (!job->over()) {
    job->owner->OnJobProgress();
  } else {
    jobs_.Remove(job);
    job->owner->OnJobOver();
  }
  return absl::OkStatus();
}

BulkChannel::Trouble BulkChannel::Repost() {
  for (uint32_t q = 0; q < queues_.size(); ++q) {
    if (queues_[q] == nullptr) continue;
    if (absl::Status s = queues_[q]->Repost(); !s.ok()) return {std::move(s), RailOfQueue(q)};
  }
  return {};
}

// ---- a rail drops out

void BulkChannel::Fail(uint32_t rail) {
  for (uint32_t q = rail * shape_.each; q < (rail + 1) * shape_.each; ++q) {
    if (Has(q)) queues_[q]->Fail();
  }
}

bool BulkChannel::Flushed(uint32_t rail) const {
  for (uint32_t q = rail * shape_.each; q < (rail + 1) * shape_.each; ++q) {
    if (Has(q) && !queues_[q]->flushed()) return false;
  }
  return true;
}

void BulkChannel::Drop(uint32_t rail) {
  CHECK(rail != shape_.primary || side_ == Side::kOwner || idle());
  if (rail == shape_.primary) enabled_ = false;
  for (uint32_t q = rail * shape_.each; q < (rail + 1) * shape_.each; ++q) {
    const std::unique_ptr<BulkQueue> queue = std::move(queues_[q]);
    if (queue == nullptr) continue;
    queue->VisitUndone([](const BulkQueue::Posted& posted) {
      --posted.job->in_flight;
      --posted.job->shares[posted.share].in_flight;
    });
  }
  for (BulkJob* job = jobs_.first(); job != nullptr;
       job = base::IntrusiveList<BulkJob, &BulkJob::all_link>::Next(job)) {
    // The puller's window went with its queue pair: its key opens nothing when the rail is back.
    if (side_ == Side::kOwner && rail != shape_.primary) job->rails &= ~(1u << rail);
    for (uint32_t s = 0; s < job->share_count && !job->stopped; ++s) {
      Share& share = job->shares[s];
      if (RailOfQueue(share.queue) == rail && share.state == Share::State::kOpen) DropShare(job, &share);
    }
    MakeReady(job);
  }
  EndThoseThatAreOver();
}

// Takes the share's unfinished chunks out of flight. The owner keeps its queue for Resolve.
void BulkChannel::DropShare(BulkJob* job, Share* share) {
  job->chunks_to_post -= share->chunks - share->posted;
  if (side_ == Side::kPuller) return Restart(job, share, share->done);
  share->state = Share::State::kParked;
}

// Moves the share to another queue pair from chunk `from` on; its chunks must not count in
// chunks_to_post.
void BulkChannel::Restart(BulkJob* job, Share* share, uint64_t from) {
  if (share->state == Share::State::kComplete) ++job->shares_open;
  share->state = Share::State::kOpen;
  share->queue = static_cast<uint8_t>(NextQueueFor(*job));
  if (from < share->done) job->bytes_done -= std::min(job->bytes_done, (share->done - from) * job->chunk);
  share->posted = share->done = from;
  job->chunks_to_post += share->chunks - from;
}

void BulkChannel::MakeReady(BulkJob* job) {
  if (job->chunks_to_post > 0 && !job->stopped && !ready_.Listed(job)) ready_.PushBack(job);
  if (job->chunks_to_post == 0 && ready_.Listed(job)) ready_.Remove(job);
}

absl::Status BulkChannel::Resolve(uint32_t rail, absl::Span<const WantedWrite> wanted) {
  for (BulkJob* job = jobs_.first(); job != nullptr;
       job = base::IntrusiveList<BulkJob, &BulkJob::all_link>::Next(job)) {
    const auto write = std::find_if(wanted.begin(), wanted.end(),
                                    [job](const WantedWrite& one) { return one.transfer == job->transfer; });
    for (uint32_t s = 0; s < job->share_count && !job->stopped; ++s) {
      Share& share = job->shares[s];
      if (RailOfQueue(share.queue) != rail || share.state == Share::State::kOpen) continue;
      if (write != wanted.end() && (write->shares_seen >> s & 1) == 0) {
        if (!made()) return absl::InvalidArgumentError("a WRITE is wanted over queue pairs that were given back");
        Restart(job, &share, 0);
      } else if (share.state == Share::State::kParked) {
        share.state = Share::State::kComplete;
        --job->shares_open;
      }
    }
    MakeReady(job);
  }
  EndThoseThatAreOver();
  return absl::OkStatus();
}

void BulkChannel::EndThoseThatAreOver() {
  for (BulkJob* job = jobs_.first(); job != nullptr;) {
    BulkJob* const one = std::exchange(job, base::IntrusiveList<BulkJob, &BulkJob::all_link>::Next(job));
    if (!one->over()) continue;
    jobs_.Remove(one);
    one->owner->OnJobOver();
  }
}

}  // namespace tokamak::transport

#include "lib/verbs/ibv/posted_requests.h"

#include <optional>
#include <utility>

#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {

PostedRequests::PostedRequests(CompletionPair completions, std::shared_ptr<SharedReceivesCore> shared,
                               uint32_t max_sends, uint32_t max_receives)
    : completions_(std::move(completions)), shared_(std::move(shared)), sends_(max_sends), receives_(max_receives) {}

void PostedRequests::Begin(uint32_t number) {
  number_ = number;
  if (shared_ != nullptr) shared_->slots.AddOwner(number_);
}

void PostedRequests::Reset() {
  sends_.Clear();
  receives_.Clear();
  if (shared_ != nullptr) shared_->slots.AddOwner(number_);
}

void PostedRequests::End() {
  if (shared_ != nullptr) shared_->slots.RemoveOwner(number_);
}

absl::Status PostedRequests::Take(const Posted& posted, bool receives, bool ended, PostResult* result) {
  WorkRing& ring = receives ? receives_ : sends_;
  ring.Commit(static_cast<uint32_t>(posted.accepted));
  result->accepted += posted.accepted;
  if (posted.accepted == posted.wanted) return absl::OkStatus();
  if (!ended) return ErrnoStatus(posted.error, receives ? "ibv_post_recv" : "ibv_post_send");
  CompletionCore& done = receives ? completions_.receives() : completions_.sends();
  for (size_t i = posted.accepted; i < posted.wanted; ++i) {
    done.AddFlush(number_, ring.posted() | (receives ? kReceiveMark : 0));
    ring.Commit(1);
  }
  result->accepted += posted.wanted - posted.accepted;
  return absl::OkStatus();
}

void PostedRequests::FlushAll() {
  for (uint64_t at = sends_.released(); at < sends_.posted(); ++at) completions_.sends().AddFlush(number_, at);
  if (shared_ != nullptr) return;
  for (uint64_t at = receives_.released(); at < receives_.posted(); ++at) {
    completions_.receives().AddFlush(number_, kReceiveMark | at);
  }
}

bool PostedRequests::Finish(const ibv_wc& done, Completion* to) {
  const bool receive = (done.wr_id & kReceiveMark) != 0;
  const uint64_t place = done.wr_id & ~kReceiveMark;
  if (receive && shared_ != nullptr) {
    const std::optional<uint64_t> id = shared_->slots.Release(static_cast<uint32_t>(place), number_);
    to->id = id.value_or(0);
    return id.has_value();
  }
  WorkRing& ring = receive ? receives_ : sends_;
  if (!ring.Holds(place)) return false;
  to->id = ring.id(place);
  if (done.status == IBV_WC_SUCCESS && ring.telling(place) == Telling::kRead) to->opcode = CompletionOpcode::kRead;
  ring.Release(place);
  return true;
}

}  // namespace tokamak::verbs::ibv

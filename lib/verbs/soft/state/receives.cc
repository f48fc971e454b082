#include "lib/verbs/soft/state/receives.h"

#include "lib/verbs/soft/state/queue_pair_core.h"

namespace tokamak::verbs::soft {

Receives::Receives(NicState& nic_state, QueuePairCore& queue_pair)
    : nic_state_(nic_state), queue_pair_(queue_pair), own_(queue_pair.receives), shared_(queue_pair.shared_receives()) {
  if (shared_ == nullptr) return;
  taken_sges_.resize(kMaxSges);
  taken_.sges = taken_sges_.data();
}

void Receives::Take() {
  if (shared_ == nullptr) {
    present_ = &own_.at(oldest_);
    return;
  }
  shared_->Take(&taken_);
  present_ = &taken_;
  if (shared_->RanLow()) nic_state_.on_receive_limit(*shared_);
}

void Receives::Complete(const Completion& completion, bool solicited) {
  Push(*present_, CompletionStatus::kSuccess, completion, solicited);
  present_ = nullptr;
}

void Receives::Flush(CompletionStatus first) {
  if (shared_ != nullptr) {
    if (present_ != nullptr) Push(*present_, first, {}, false);
  } else {
    CompletionStatus status = first;
    for (const uint64_t tail = own_.tail(); oldest_ < tail; status = CompletionStatus::kFlushed) {
      Push(own_.at(oldest_), status, {}, false);
    }
  }
  present_ = nullptr;
}

void Receives::Forget() {
  if (shared_ != nullptr) {
    if (present_ != nullptr) queue_pair_.receive_ring().Release(shared_->queue.released(), shared_->Over());
  } else {
    oldest_ = own_.tail();
  }
  present_ = nullptr;
}

void Receives::Push(const ReceiveSlot& slot, CompletionStatus status, const Completion& with, bool solicited) {
  Completion completion = with;
  completion.id = slot.id;
  completion.status = status;
  completion.queue_pair_number = queue_pair_.number();
  uint64_t* const released = shared_ != nullptr ? shared_->queue.released() : own_.released();
  const uint64_t release = shared_ != nullptr ? shared_->Over() : ++oldest_;
  nic_state_.Push(queue_pair_.receive_ring(), completion, released, release, solicited);
}

}  // namespace tokamak::verbs::soft

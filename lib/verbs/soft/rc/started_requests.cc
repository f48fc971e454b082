#include "lib/verbs/soft/rc/started_requests.h"

#include "lib/verbs/soft/packets/opcodes.h"
#include "lib/verbs/soft/rc/connected_core.h"
#include "lib/verbs/soft/rc/psn.h"

namespace tokamak::verbs::soft {

StartedRequests::StartedRequests(NicState& nic_state, ConnectedCore& queue_pair)
    : nic_state_(nic_state), queue_pair_(queue_pair), sends_(queue_pair.sends) {}

bool StartedRequests::StartNext() {
  if (started_ == sends_.tail()) return false;
  SendSlot& slot = sends_.at(started_);
  if (!MayStart(slot)) return false;
  slot.first = next_;
  if (slot.is_local()) {
    slot.refused = !CarryOut(slot);
  } else {
    next_ += PacketsFor(slot.length, queue_pair_.mtu());
  }
  slot.end = next_;
  if (slot.wants_answer()) ++unanswered_;
  ++started_;
  return true;
}

// A fence waits for READs and atomics, that of an invalidate for all requests. (10.8.3.3)
bool StartedRequests::MayStart(const SendSlot& slot) const {
  if (!slot.fence) return true;
  return slot.opcode == Opcode::kLocalInvalidate ? oldest_ == started_ : unanswered_ == 0;
}

bool StartedRequests::CarryOut(const SendSlot& slot) {
  if (slot.opcode == Opcode::kBindWindow) return nic_state_.keys.Bind(queue_pair_.asker(), slot.bind);
  if (!nic_state_.keys.Invalidate(queue_pair_.domain(), slot.rkey)) return false;
  nic_state_.counters.dropped_before_send += nic_state_.outbox.DropKey(slot.rkey);
  return true;
}

void StartedRequests::CompleteOldest() {
  Complete(oldest_, CompletionStatus::kSuccess, 0);
  if (sends_.at(oldest_).wants_answer()) --unanswered_;
  ++oldest_;
  CompleteLocal();
}

void StartedRequests::CompleteLocal() {
  for (; oldest_ < started_ && sends_.at(oldest_).is_local() && !sends_.at(oldest_).refused; ++oldest_) {
    Complete(oldest_, CompletionStatus::kSuccess, 0);
  }
}

void StartedRequests::Complete(uint64_t index, CompletionStatus status, uint32_t provider_code) {
  const SendSlot& slot = sends_.at(index);
  if (status == CompletionStatus::kSuccess && !slot.signaled) return;
  Completion completion;
  completion.id = slot.id;
  completion.status = status;
  completion.opcode = ToCompletionOpcode(slot.opcode);
  completion.byte_count = slot.length;
  completion.queue_pair_number = queue_pair_.number();
  completion.provider_code = provider_code;
  nic_state_.Push(queue_pair_.send_ring(), completion, sends_.released(), index + 1, false);
}

void StartedRequests::Flush(CompletionStatus first, uint32_t provider_code, uint64_t sequence) {
  const uint64_t tail = sends_.tail();
  for (uint64_t i = oldest_; i < tail; ++i) {
    const bool failed = i == oldest_ && first != CompletionStatus::kFlushed;
    Complete(i, failed ? first : CompletionStatus::kFlushed, failed ? provider_code : 0);
  }
  ForgetUpTo(tail, sequence);
}

void StartedRequests::ForgetUpTo(uint64_t tail, uint64_t sequence) {
  oldest_ = started_ = tail;
  next_ = sequence;
  unanswered_ = 0;
}

}  // namespace tokamak::verbs::soft

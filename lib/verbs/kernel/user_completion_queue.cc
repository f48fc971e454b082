#include "lib/verbs/kernel/user_completion_queue.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/verbs/kernel/program/translate.h"

namespace tokamak::verbs::kernel {
namespace {

constexpr size_t kDrainedAtOnce = 64;

}  // namespace

int UserCompletionQueue::Make(UserDevice& device, RingMemory& memory, uint32_t depth, uint64_t name,
                              std::shared_ptr<EventPipe> channel, AsyncEvents& async,
                              std::unique_ptr<UserCompletionQueue>* made) {
  std::unique_ptr<ProviderRing> ring = ProviderRing::Make(memory, depth, sizeof(ib_uverbs_wc));
  if (ring == nullptr) return ENOMEM;
  const uint32_t capacity = ring->capacity();
  made->reset(new UserCompletionQueue(memory, name, std::move(channel), async, std::move(ring)));
  UserCompletionQueue* const self = made->get();
  // The NIC's queue is drained in each round, so it has to hold only the completions of one.
  absl::StatusOr<std::unique_ptr<CompletionQueue>> queue =
      device.nic().CreateCompletionQueue(device.loop(), capacity + 1, [self] { self->Drain(); });
  if (!queue.ok()) return ErrnoOf(queue.status());
  self->queue_ = *std::move(queue);
  self->queue_->RequestNotify();
  return 0;
}

UserCompletionQueue::UserCompletionQueue(RingMemory& memory, uint64_t name, std::shared_ptr<EventPipe> channel,
                                         AsyncEvents& async, std::unique_ptr<ProviderRing> ring)
    : Object(kKind),
      memory_(memory),
      name_(name),
      channel_(std::move(channel)),
      async_(async),
      ring_(std::move(ring)) {}

UserCompletionQueue::~UserCompletionQueue() {
  RetireCompletionEvents();
  RetireAsyncEvents();
}

void UserCompletionQueue::Arm(bool solicited_only) {
  if (!solicited_only) {
    armed_ = Armed::kAny;
  } else if (armed_ == Armed::kNot) {
    armed_ = Armed::kSolicited;
  }
}

void UserCompletionQueue::Drain() {
  queue_->RequestNotify();
  std::array<Completion, kDrainedAtOnce> completions;
  size_t count = 0;
  do {
    count = queue_->Poll(absl::MakeSpan(completions));
    for (size_t i = 0; i < count; ++i) {
      const Completion& completion = completions[i];
      const auto owner = owners_.find(completion.queue_pair_number);
      if (owner == owners_.end()) continue;
      ib_uverbs_wc work_completion;
      if (!owner->second->Finish(completion, &work_completion)) continue;
      Push(work_completion, completion.solicited || completion.status != CompletionStatus::kSuccess);
    }
  } while (count == completions.size());
}

void UserCompletionQueue::Push(const ib_uverbs_wc& work_completion, bool solicited) {
  if (lost_) return;
  const uint32_t next = ring_->Next(produced_);
  if (next == ring_->consumer()) return Lose();
  std::memcpy(ring_->at(produced_), &work_completion, sizeof(work_completion));
  produced_ = next;
  ring_->SetProducer(produced_);
  if (armed_ == Armed::kNot || (armed_ == Armed::kSolicited && !solicited)) return;
  armed_ = Armed::kNot;
  if (channel_ != nullptr) channel_->Write(&name_);
}

// Overrun. (11.6.3.2)
void UserCompletionQueue::Lose() {
  lost_ = true;
  async_.Raise(IBV_EVENT_CQ_ERR, name_);
  for (const auto& [number, owner] : owners_) owner->OnQueueLost();
}

int UserCompletionQueue::Resize(uint32_t depth) {
  Drain();
  std::unique_ptr<ProviderRing> ring = ProviderRing::Make(memory_, depth, sizeof(ib_uverbs_wc));
  if (ring == nullptr) return ENOMEM;
  uint32_t moved = 0;
  for (uint32_t at = ring_->consumer(); at != produced_; at = ring_->Next(at)) {
    if (moved == ring->capacity()) return EINVAL;
    std::memcpy(ring->at(moved++), ring_->at(at), sizeof(ib_uverbs_wc));
  }
  if (const absl::Status resized = queue_->Resize(ring->capacity() + 1); !resized.ok()) return ErrnoOf(resized);
  ring_ = std::move(ring);
  produced_ = moved;
  ring_->SetProducer(produced_);
  return 0;
}

}  // namespace tokamak::verbs::kernel

#include "lib/verbs/kernel/user_shared_receives.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/verbs/kernel/program/receive_wqe.h"
#include "lib/verbs/kernel/program/translate.h"

namespace tokamak::verbs::kernel {

int UserSharedReceives::Make(UserDevice& device, RingMemory& memory, DomainObject& domain, uint32_t depth,
                             uint32_t max_sges, uint64_t name, AsyncEvents& async,
                             std::unique_ptr<UserSharedReceives>* made) {
  const Limits& limits = device.nic().limits();
  if (depth == 0 || depth > UserDevice::kMaxRequests || max_sges > limits.max_sges) return EINVAL;
  std::unique_ptr<ProviderRing> ring = ProviderRing::Make(memory, depth, kReceiveHeader + max_sges * sizeof(rxe_sge));
  if (ring == nullptr) return ENOMEM;
  // Made for the most that the program may ever ask for, since only the ring can be resized.
  absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> queue =
      domain.domain->CreateSharedReceiveQueue(limits.max_receive_requests, std::max(max_sges, 1u));
  if (!queue.ok()) return ErrnoOf(queue.status());
  made->reset(new UserSharedReceives(device, memory, domain, max_sges, name, async, std::move(ring)));
  (*made)->queue_ = *std::move(queue);
  device.Add(**made);
  return 0;
}

UserSharedReceives::UserSharedReceives(UserDevice& device, RingMemory& memory, DomainObject& domain, uint32_t max_sges,
                                       uint64_t name, AsyncEvents& async, std::unique_ptr<ProviderRing> ring)
    : Object(kKind),
      device_(device),
      memory_(memory),
      domain_(&domain),
      max_sges_(max_sges),
      name_(name),
      async_(async),
      ring_(std::move(ring)) {}

UserSharedReceives::~UserSharedReceives() {
  device_.Remove(*this);
  RetireAsyncEvents();
}

void UserSharedReceives::Pull() {
  for (; taken_ != ring_->producer(); taken_ = ring_->Next(taken_)) {
    const ReceiveWqe receive = ReadReceive(*ring_, taken_);
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(requests_.size()));
      requests_.push_back(0);
    }
    ReceiveRequest request;
    request.id = kReceiveId | free_.back();
    request.sges = receive.memory();
    const PostResult posted = queue_->PostReceive(absl::MakeConstSpan(&request, 1));
    if (absl::IsResourceExhausted(posted.status)) return;
    if (!posted.ok()) continue;  // no device takes it; providers post no such receive
    requests_[free_.back()] = receive.request;
    free_.pop_back();
    ring_->SetConsumer(ring_->Next(taken_));
  }
}

uint64_t UserSharedReceives::Finish(uint64_t id) {
  const auto index = static_cast<uint32_t>(id & ~kReceiveId);
  free_.push_back(index);
  return requests_[index];
}

int UserSharedReceives::Arm(uint32_t limit) {
  if (limit > ring_->capacity()) return EINVAL;
  Pull();
  limit_ = limit;
  return ErrnoOf(queue_->Arm(limit));
}

void UserSharedReceives::OnLimit() {
  limit_ = 0;
  async_.Raise(IBV_EVENT_SRQ_LIMIT_REACHED, name_);
}

int UserSharedReceives::Resize(uint32_t depth) {
  if (depth == 0 || depth > UserDevice::kMaxRequests || depth < limit_) return EINVAL;
  Pull();
  if (taken_ != ring_->producer()) return EINVAL;
  std::unique_ptr<ProviderRing> ring = ProviderRing::Make(memory_, depth, kReceiveHeader + max_sges_ * sizeof(rxe_sge));
  if (ring == nullptr) return ENOMEM;
  ring_ = std::move(ring);
  taken_ = 0;
  return 0;
}

}  // namespace tokamak::verbs::kernel

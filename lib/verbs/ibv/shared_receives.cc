#include "lib/verbs/ibv/shared_receives.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/verbs/ibv/posting/work_ring.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {

absl::StatusOr<std::shared_ptr<SharedReceivesCore>> SharedReceivesCore::Make(std::shared_ptr<Domain> domain,
                                                                             uint32_t depth, uint32_t max_sges) {
  const Limits& limits = domain->context().limits();
  if (!limits.shared_receive) return absl::UnimplementedError("the device has no shared receive queues");
  if (depth == 0 || depth > limits.max_receive_requests || max_sges > limits.max_sges) {
    return absl::InvalidArgumentError(absl::StrCat("a shared receive queue has 1 to ", limits.max_receive_requests,
                                                   " receives of at most ", limits.max_sges, " sges"));
  }
  auto core = std::make_shared<SharedReceivesCore>(std::move(domain), depth, max_sges);
  ibv_srq_init_attr wanted{};
  wanted.srq_context = static_cast<AsyncTarget*>(core.get());
  wanted.attr.max_wr = depth;
  wanted.attr.max_sge = std::max(max_sges, 1u);
  errno = 0;
  core->queue_ = ibv_create_srq(core->domain_->pd(), &wanted);
  if (core->queue_ == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_create_srq");
  return core;
}

SharedReceivesCore::~SharedReceivesCore() {
  CHECK(receivers_.empty()) << "a queue pair keeps the queue that it draws from";
  if (queue_ == nullptr) return;
  const int error = ibv_destroy_srq(queue_);
  LOG_IF(ERROR, error != 0) << "ibv_destroy_srq: " << std::strerror(std::abs(error));
}

PostResult SharedReceivesCore::PostReceive(absl::Span<const ReceiveRequest> requests) {
  const Limits& limits = domain_->context().limits();
  const bool never_none = domain_->context().quirks().needs_a_piece;
  PostResult result;
  ReceiveBatch batch;
  std::array<uint32_t, kBatchRequests> taken;
  const auto post = [&] {
    if (batch.empty()) return absl::OkStatus();
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_srq_recv(queue_, batch.first(), &bad);
    const size_t accepted = batch.Accepted(error, bad);
    for (size_t i = batch.size(); i > accepted; --i) slots.Back(taken[i - 1]);
    result.accepted += accepted;
    batch.Clear();
    return error == 0 || bad == nullptr ? absl::OkStatus() : ErrnoStatus(error, "ibv_post_srq_recv");
  };
  for (const ReceiveRequest& request : requests) {
    absl::Status status = CheckReceive(request, limits, bounds_);
    if (status.ok() && !batch.HasRoomFor(std::max<size_t>(request.sges.size(), 1))) status = post();
    uint32_t slot = 0;
    if (status.ok() && !slots.Take(request.id, &slot)) status = QueueFull(slots.depth());
    if (!status.ok()) {
      result.status = std::move(status);
      break;
    }
    taken[batch.size()] = slot;
    AddReceive(request, kReceiveMark | slot, never_none, &batch);
  }
  if (absl::Status status = post(); !status.ok()) result.status = std::move(status);
  return result;
}

absl::Status SharedReceivesCore::Arm(uint32_t limit) {
  if (limit > slots.depth()) {
    return absl::InvalidArgumentError(absl::StrCat("a limit of ", limit, " in a queue of ", slots.depth()));
  }
  ibv_srq_attr attributes{};
  attributes.srq_limit = limit;
  const int error = ibv_modify_srq(queue_, &attributes, IBV_SRQ_LIMIT);
  return error == 0 ? absl::OkStatus() : ErrnoStatus(error, "ibv_modify_srq");
}

bool SharedReceivesCore::BelongsTo(const base::EventLoop& loop) {
  if (loop_ == nullptr) loop_ = &loop;
  return loop_ == &loop;
}

void SharedReceivesCore::Remove(SharedReceiver& receiver) {
  receivers_.erase(std::remove(receivers_.begin(), receivers_.end(), &receiver), receivers_.end());
}

void SharedReceivesCore::Close() {
  if (const SharedReceiveQueue* dropped = handle_.exchange(nullptr)) domain_->context().events().Forget(dropped);
  for (SharedReceiver* receiver : receivers_) receiver->SharedQueueDropped();
}

}  // namespace tokamak::verbs::ibv

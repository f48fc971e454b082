#include "lib/verbs/ibv/posting/provider_queue_pair.h"

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {

absl::Status ProviderQueuePair::Make() {
  const base::MutexLock lock(mutex_);
  if (tried()) return made_;
  made_ = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
    if (destroyed_ || ended()) return absl::CancelledError("the queue pair ended before its device had made it");
    errno = 0;
    ibv_qp* const made = ibv_create_qp(domain_, &wanted_);
    if (made == nullptr) return ErrnoStatus(errno == 0 ? EIO : errno, "ibv_create_qp");
    if (const int error = std::abs(ibv_modify_qp(made, &init_.attributes, init_.mask)); error != 0) {
      ibv_destroy_qp(made);
      return ErrnoStatus(error, "ibv_modify_qp to Init");
    }
    queue_pair_ = made;
    number_.store(made->qp_num, std::memory_order_release);
    return absl::OkStatus();
  }();
  tried_.store(true, std::memory_order_release);
  return made_;
}

int ProviderQueuePair::Walk(const ibv_qp_attr& attributes, int mask, Walker* walker) {
  const base::MutexLock lock(mutex_);
  const bool moves = (mask & IBV_QP_STATE) != 0;
  const bool ends = moves && attributes.qp_state == IBV_QPS_ERR;
  const bool resets = moves && attributes.qp_state == IBV_QPS_RESET;
  if (walker != nullptr && !walker->MayWalk()) return ECANCELED;
  if (queue_pair_ == nullptr) {
    if (ends) ended_.store(true, std::memory_order_release);
    return ECANCELED;
  }
  if (ended() && !ends && !resets) return ECANCELED;
  ibv_qp_attr asked = attributes;
  const int error = std::abs(ibv_modify_qp(queue_pair_, &asked, mask));
  const bool lost = error == EIO || error == ENODEV;
  if (lost) lost_.store(true, std::memory_order_release);
  if (moves && attributes.qp_state == IBV_QPS_RTS && error == 0) ready_.store(true, std::memory_order_release);
  if (ends && (error == 0 || lost)) ended_.store(true, std::memory_order_release);
  if (resets && error == 0) {
    ready_.store(false, std::memory_order_release);
    ended_.store(false, std::memory_order_release);
  }
  return error;
}

int ProviderQueuePair::Destroy() {
  ibv_qp* destroyed = nullptr;
  {
    const base::MutexLock lock(mutex_);
    destroyed_ = true;
    std::swap(destroyed, queue_pair_);
  }
  return destroyed == nullptr ? 0 : std::abs(ibv_destroy_qp(destroyed));
}

}  // namespace tokamak::verbs::ibv

#include "lib/verbs/ibv/cm/walked_queue_pair.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {

QueuePairState WalkedQueuePair::connection_state() const {
  return provider_->ended() ? QueuePairState::kError : state_;
}

absl::Status WalkedQueuePair::Walk(ibv_qp_attr attributes, int mask) {
  const bool moves = (mask & IBV_QP_STATE) != 0;
  const bool ends = moves && attributes.qp_state == IBV_QPS_ERR;
  if (ends && provider_->ended() && facts_.link == LinkKind::kIwarp) return absl::OkStatus();
  const int error = provider_->Walk(attributes, mask, walker_.get());
  // There is nothing to end if the walker was stopped, or the queue pair or its device is gone.
  if (ends && (error == ECANCELED || provider_->lost())) return absl::OkStatus();
  const QueuePairState to = StateOf(attributes.qp_state);
  if (error != 0) return ErrnoStatus(error, absl::StrCat("ibv_modify_qp to ", ToString(to)));
  if (moves) state_ = to;
  return absl::OkStatus();
}

// The kernel has walked it. If its loop has given it up meanwhile, it ends here.
void WalkedQueuePair::WasConnected(uint8_t reads) {
  if (!walker_->MayWalk()) {
    const Step error = ErrorStep();
    (void)provider_->Walk(error.attributes, error.mask);
    return;
  }
  state_ = QueuePairState::kReadyToSend;
  reads_ = reads;
}

}  // namespace tokamak::verbs::ibv

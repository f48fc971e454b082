#include "lib/verbs/ibv/translation/manual_steps.h"

#include "absl/strings/str_cat.h"

namespace tokamak::verbs::ibv {

bool IsStepForward(QueuePairState from, QueuePairState to) {
  return (to == QueuePairState::kInit && from == QueuePairState::kReset) ||
         (to == QueuePairState::kReadyToReceive && from == QueuePairState::kInit) ||
         (to == QueuePairState::kReadyToSend && from == QueuePairState::kReadyToReceive);
}

absl::StatusOr<Agreement> AgreementOf(const QueuePairAttributes& attributes, const Limits& limits) {
  constexpr uint32_t k24Bits = 0xffffff;
  if (attributes.peer_number > k24Bits || attributes.receive_psn > k24Bits || attributes.send_psn > k24Bits) {
    return absl::InvalidArgumentError("queue pair numbers and PSNs have 24 bits");
  }
  if (attributes.reliability.reads_outstanding > limits.max_reads ||
      attributes.reliability.reads_served > limits.max_reads) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", limits.max_reads, " READs at once"));
  }
  Agreement agreement;
  agreement.peer_number = attributes.peer_number;
  agreement.receive_psn = attributes.receive_psn;
  agreement.send_psn = attributes.send_psn;
  agreement.path_mtu = attributes.path_mtu;
  agreement.reliability = attributes.reliability;
  return agreement;
}

}  // namespace tokamak::verbs::ibv

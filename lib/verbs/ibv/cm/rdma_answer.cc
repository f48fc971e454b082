#include "lib/verbs/ibv/cm/rdma_answer.h"

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "lib/verbs/ibv/cm/connection_rules.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {

absl::Status CheckAnswer(const rdma_conn_param& answer, LinkKind link, QueuePairState state, uint32_t max_reads) {
  if (answer.responder_resources > max_reads || answer.initiator_depth > max_reads) {
    return absl::InvalidArgumentError(absl::StrCat("reads of ", answer.responder_resources, " served and ",
                                                   answer.initiator_depth, " outstanding, where the device has ",
                                                   max_reads));
  }
  if (answer.private_data_len > kCarriedPrivateData) {
    return absl::InvalidArgumentError(
        absl::StrCat(answer.private_data_len, " bytes of private data, more than ", kCarriedPrivateData));
  }
  if (answer.qp_num == 0) return absl::InvalidArgumentError("no queue pair has number 0");
  const QueuePairState needed = link == LinkKind::kIwarp ? QueuePairState::kInit : QueuePairState::kReadyToSend;
  if (state != needed) {
    return absl::FailedPreconditionError(
        absl::StrCat("queue pair ", answer.qp_num, " is in state ", ToString(state), ", not in ", ToString(needed)));
  }
  return absl::OkStatus();
}

absl::Status AnswerStatus(int error, absl::string_view call) {
  // ECONNRESET: iWARP's errno for a broken TCP connection below.
  if (error != EINVAL && error != ECONNRESET) return ErrnoStatus(error, call);
  return absl::CancelledError(absl::StrCat("the peer does not wait for this connection any more (", call, ")"));
}

}  // namespace tokamak::verbs::ibv

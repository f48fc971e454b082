// The passive side's answer over librdmacm: its valid contents, and the meaning of the kernel's
// refusal.
//
// The kernel returns EINVAL both when the asker has gone and when the answer is wrong, and the id's
// state does not show which: a failed rdma_accept rejects the request, and a departure changes the
// state before its event comes. So the answer is checked before, by the rules of rdma_cm, iw_cm and
// their providers; after that EINVAL can only mean the departure.
//
// Pure functions.
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/verbs/ibv/translation/attributes.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// Errors are mistakes of ours. kInvalidArgument: too many reads for the device, more private data
// than every asker can get, no queue pair. kFailedPrecondition: the queue pair cannot be connected
// in `state`: it is not Init (iWARP), or not ReadyToSend (others).
absl::Status CheckAnswer(const rdma_conn_param& answer, LinkKind link, QueuePairState state, uint32_t max_reads);

// Maps `error` of `call` for a checked answer: kCancelled if the asker has gone, else as
// ErrnoStatus. `call`: rdma_accept, or rdma_init_qp_attr for Init, ReadyToReceive or ReadyToSend.
absl::Status AnswerStatus(int error, absl::string_view call);

}  // namespace tokamak::verbs::ibv

// The passive side's answer over librdmacm: its valid contents, and the meaning of the kernel's
// refusal.
//
// The kernel returns EINVAL both when the asker has gone and when the answer is wrong. It cannot be
// asked which: a failed rdma_accept rejects the request, so the id's state allows nothing then, and
// the event of an asker's departure comes after the departure has changed that state. Therefore the
// answer is checked before, against all that rdma_cm, iw_cm and their providers look at; after that
// EINVAL can only be the departure.
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

// kInvalidArgument: a device with `max_reads` would refuse `answer`, for a queue pair in `state`,
// from any asker: too many reads, more private data than the smallest that is carried, no queue
// pair. kFailedPrecondition: the queue pair cannot be connected in this state: on iWARP it has left
// Init, elsewhere it was not brought to ReadyToSend. Both are mistakes of ours.
absl::Status CheckAnswer(const rdma_conn_param& answer, LinkKind link, QueuePairState state, uint32_t max_reads);

// Maps `error` of `call` for a checked answer: kCancelled if the asker has gone, else as
// ErrnoStatus. `call` is rdma_accept, or rdma_init_qp_attr for a state that it knows (Init,
// ReadyToReceive, ReadyToSend).
absl::Status AnswerStatus(int error, absl::string_view call);

}  // namespace tokamak::verbs::ibv

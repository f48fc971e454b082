// The passive side's answer over librdmacm: what it may say, and what it means when the kernel does
// not take it.
//
// The kernel has one word, EINVAL, for two things: nobody waits for the answer any more, and the
// answer is wrong. It cannot be asked which it was: it rejects by itself what rdma_accept fails at,
// so the id is in no state for anything then, and the event that tells of an asker's departure
// comes after that departure has changed the id's state. Therefore what the answer says is checked
// before, against all that rdma_cm, iw_cm and their providers look at, and from then on EINVAL can
// only be the departure.
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

// kInvalidArgument: `answer`, for a queue pair in `state`, would be refused by a device with
// `max_reads` whoever asked: too many reads, more private data than the smallest that is carried,
// no queue pair. kFailedPrecondition: the queue pair is in no state to be connected: on iWARP it
// has left Init, elsewhere it was not brought to ReadyToSend. Any of them is a mistake of ours.
absl::Status CheckAnswer(const rdma_conn_param& answer, LinkKind link, QueuePairState state, uint32_t max_reads);

// What `error` of `call` says about an answer that was checked: kCancelled when the asker has gone,
// else as ErrnoStatus. `call` is rdma_accept, or rdma_init_qp_attr for a state that it knows (Init,
// ReadyToReceive, ReadyToSend).
absl::Status AnswerStatus(int error, absl::string_view call);

}  // namespace tokamak::verbs::ibv

// Errors of libibverbs in our terms: its errno values as Status, its completion statuses as
// CompletionStatus, one to one.
#pragma once

#include <infiniband/verbs.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// `error` is an errno value; some providers return it negated. `call` names the failed call,
// "ibv_create_qp" say. The text has the system's words and, if there is one, the remedy.
absl::Status ErrnoStatus(int error, absl::string_view call);

// The same for locking memory: ENOMEM names the present RLIMIT_MEMLOCK and how to raise it.
// `bytes`: the size to be locked.
absl::Status RegistrationStatus(int error, uint64_t bytes);

// Maps statuses of reliable datagrams, contexts and tag matching, which cannot come from our queue
// pairs, to kGeneral.
CompletionStatus ToCompletionStatus(ibv_wc_status status);

}  // namespace tokamak::verbs::ibv

// Errors of libibverbs in our terms: its errno values as Status, its completion statuses as
// CompletionStatus, one to one.
#pragma once

#include <infiniband/verbs.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// `error` is an errno, which some providers return negated; `call` names the failed call,
// "ibv_create_qp" say. The text has the system's words and, if there is one, the remedy.
absl::Status ErrnoStatus(int error, absl::string_view call);

// Maps errors of locking `bytes` of memory: ENOMEM names RLIMIT_MEMLOCK and how to raise it.
absl::Status RegistrationStatus(int error, uint64_t bytes);

// Maps statuses that our queue pairs cannot have (reliable datagrams, contexts, tag matching) to
// kGeneral.
CompletionStatus ToCompletionStatus(ibv_wc_status status);

}  // namespace tokamak::verbs::ibv

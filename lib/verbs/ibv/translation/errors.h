// What libibverbs says, in our words: its errno values as Status, its completion statuses as
// CompletionStatus, one to one.
#pragma once

#include <infiniband/verbs.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "lib/verbs/types.h"

namespace tokamak::verbs::ibv {

// `error` is an errno value; some providers return it negated. `call` names what failed,
// "ibv_create_qp" say. The text has the system's words and, for what has a remedy, the remedy.
absl::Status ErrnoStatus(int error, absl::string_view call);

// The same for locking memory: ENOMEM names RLIMIT_MEMLOCK as it is and how to raise it. `bytes`:
// what was to be locked.
absl::Status RegistrationStatus(int error, uint64_t bytes);

// What the specification keeps for reliable datagrams, contexts and tag matching cannot come from
// our queue pairs: kGeneral.
CompletionStatus ToCompletionStatus(ibv_wc_status status);

}  // namespace tokamak::verbs::ibv

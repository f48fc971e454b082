// `tok tune --serve`: makes the test objects for a `tok tune --peer` on another machine, see ask.h.
#pragma once

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/common/undo.h"
#include "tokamak/client.h"

namespace tokamak::cli::tune {

// Waits at most `patience` for a call, then serves to the other side's end. kDeadlineExceeded: no
// call, or silence. The objects are deleted in any case, there or here.
absl::Status Serve(Client& client, base::Duration patience, Undo& undo);

}  // namespace tokamak::cli::tune

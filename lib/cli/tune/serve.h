// `tok tune --serve`: makes the test objects that a `tok tune --peer` on another machine asks for,
// see ask.h.
#pragma once

#include "absl/status/status.h"
#include "lib/base/time.h"
#include "lib/cli/common/undo.h"
#include "tokamak/client.h"

namespace tokamak::cli::tune {

// Waits at most `patience` to be called, and then serves until the other ends; kDeadlineExceeded
// where it is not called, or the other falls silent. What it made is deleted then, by the other or
// here.
absl::Status Serve(Client& client, base::Duration patience, Undo& undo);

}  // namespace tokamak::cli::tune

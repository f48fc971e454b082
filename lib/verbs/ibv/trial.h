// A trial of a device when it is opened: whether it works at all, and a limit that it does not
// report.
//
// A listed device may refuse all work: there is no right to /dev/infiniband, the driver has no
// hardware, the library no provider. So the objects of every transfer are made once, and dropped.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {

// Returns the most inline bytes granted to a queue pair (see limits.h). Errors are those of the
// failed call.
absl::StatusOr<uint32_t> TryDevice(ibv_context* device, const LocalPort& port);

}  // namespace tokamak::verbs::ibv

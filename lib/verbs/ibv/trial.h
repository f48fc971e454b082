// A trial of a device when it is opened: whether it works at all, and a limit that it does not
// report.
//
// Devices may be listed and refuse all work: a container without the right to /dev/infiniband, a
// driver without its hardware, a library without its provider. So the objects of every transfer are
// made once, and dropped.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {

// Returns the most inline bytes that a queue pair of `device` is granted (see limits.h), found by
// trial. Errors: those of the failed call.
absl::StatusOr<uint32_t> TryDevice(ibv_context* device, const LocalPort& port);

}  // namespace tokamak::verbs::ibv

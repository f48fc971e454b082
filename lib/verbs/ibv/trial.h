// Trying a device out when it is opened: what it cannot be asked, and whether it works at all.
//
// Devices may be listed and refuse all work: a container without the right to /dev/infiniband, a
// driver without its hardware, a library without its provider. So the objects that every transfer
// needs are made once, and dropped.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {

// The most inline bytes that a queue pair of `device` is granted (see limits.h), found by trial.
// Errors: what failed.
absl::StatusOr<uint32_t> TryDevice(ibv_context* device, const LocalPort& port);

}  // namespace tokamak::verbs::ibv

// The limits of the software NIC, on a given link.
#pragma once

#include <cstdint>

#include "lib/verbs/types.h"

namespace tokamak::verbs::soft {

// Returns the largest path MTU of the specification that fits `mtu` bytes; at least kMinMtu.
uint32_t RoundMtu(uint32_t mtu);

// `active_mtu`: of the port, a path MTU.
Limits MakeLimits(uint32_t active_mtu);

}  // namespace tokamak::verbs::soft

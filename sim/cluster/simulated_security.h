// Peers of a simulation that are authenticated: their secret and their random bytes come from a
// seed, and are good for nothing else.
#pragma once

#include <cstdint>

#include "lib/transport/peer_security.h"

namespace tokamak::sim {

// All copies of one draw from the same stream: no two handshakes get the same bytes.
transport::PeerSecurity SecurityOfSeed(uint64_t seed);

}  // namespace tokamak::sim

// The transport's bounds that others count on.
#pragma once

#include <cstdint>

namespace tokamak::transport {

// Transfers that an endpoint serves at once, and that it pulls at once, unless its options say otherwise.
constexpr uint32_t kMaxTransfers = 1024;

// Of what an endpoint serves one peer may have this part.
constexpr uint32_t kPeerPart = 4;

}  // namespace tokamak::transport

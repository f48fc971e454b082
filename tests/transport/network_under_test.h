// The network that the transport's tests run on, and whether peers are authenticated on it: whoever
// links a test links one definition of each.
#pragma once

#include <memory>

#include "lib/base/trace.h"
#include "lib/transport/peer_security.h"
#include "sim/network/network.h"

namespace tokamak::transport::testing {

// A NetworkMaker.
std::unique_ptr<sim::Network> MakeNetworkUnderTest(const sim::NetworkOptions& options, base::Trace& trace);

// The security of endpoints that do not say otherwise.
PeerSecurity SecurityUnderTest();

}  // namespace tokamak::transport::testing

// The network that the transport's tests run on: whoever links a test links one definition of it.
#pragma once

#include <memory>

#include "lib/base/trace.h"
#include "sim/network/network.h"

namespace tokamak::transport::testing {

// A NetworkMaker.
std::unique_ptr<sim::Network> MakeNetworkUnderTest(const sim::NetworkOptions& options, base::Trace& trace);

}  // namespace tokamak::transport::testing

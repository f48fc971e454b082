// SPDX-License-Identifier: GPL-2.0-only
//
// Switches and cables, inside ns-3.
#include "sim/network/switched_network.h"
#include "sim/ns3/ns3_time.h"
#include "tests/transport/network_under_test.h"

namespace tokamak::transport::testing {

std::unique_ptr<sim::Network> MakeNetworkUnderTest(const sim::NetworkOptions& options, base::Trace&) {
  return std::make_unique<sim::SwitchedNetwork>(std::make_unique<sim::Ns3Time>(), options);
}

}  // namespace tokamak::transport::testing

// Switches and cables, in our own virtual time.
#include "sim/network/switched_network.h"
#include "sim/time/sim_time.h"
#include "tests/transport/network_under_test.h"

namespace tokamak::transport::testing {

std::unique_ptr<sim::Network> MakeNetworkUnderTest(const sim::NetworkOptions& options, base::Trace&) {
  return std::make_unique<sim::SwitchedNetwork>(std::make_unique<sim::SimTime>(), options);
}

}  // namespace tokamak::transport::testing

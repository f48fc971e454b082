// The seeded fabric, in our own virtual time.
#include "sim/network/sim_network.h"
#include "tests/transport/network_under_test.h"

namespace tokamak::transport::testing {

std::unique_ptr<sim::Network> MakeNetworkUnderTest(const sim::NetworkOptions& options, base::Trace& trace) {
  return sim::MakeSimNetwork(options, trace);
}

}  // namespace tokamak::transport::testing

// Peers are not authenticated.
#include "tests/transport/network_under_test.h"

namespace tokamak::transport::testing {

PeerSecurity SecurityUnderTest() { return {}; }

}  // namespace tokamak::transport::testing

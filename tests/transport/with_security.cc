// Peers are authenticated by one secret, and seal what they say.
#include "tests/transport/network_under_test.h"
#include "tests/transport/security.h"

namespace tokamak::transport::testing {

PeerSecurity SecurityUnderTest() { return SecurityOf({1}); }

}  // namespace tokamak::transport::testing

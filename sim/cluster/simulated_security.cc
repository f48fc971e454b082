#include "sim/cluster/simulated_security.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/random.h"
#include "lib/security/secret_bytes.h"

namespace tokamak::sim {

transport::PeerSecurity SecurityOfSeed(uint64_t seed) {
  const auto random = std::make_shared<base::Random>(seed);
  transport::PeerSecurity security;
  security.draw = [random](absl::Span<uint8_t> bytes) {
    std::generate(bytes.begin(), bytes.end(), [&random] { return static_cast<uint8_t>(random->Next()); });
  };
  security::Key secret;
  security.draw(secret.writable());
  security.secrets = std::make_shared<const security::ClusterSecrets>(security::ClusterSecret(secret.bytes()));
  return security;
}

}  // namespace tokamak::sim

// Secrets and random bytes of endpoints under test: the same in each run, and good for nothing
// else.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/base/random.h"
#include "lib/security/cluster_secret.h"
#include "lib/transport/peer_security.h"

namespace tokamak::transport::testing {

inline security::ClusterSecret SecretNumber(uint8_t number) {
  std::array<uint8_t, 32> bytes;
  bytes.fill(number);
  return security::ClusterSecret(bytes);
}

// The first is used, all are valid.
inline std::shared_ptr<const security::ClusterSecrets> SecretsOf(const std::vector<uint8_t>& numbers) {
  std::string text;
  for (const uint8_t number : numbers) text += SecretNumber(number).ToText() + "\n";
  auto secrets = security::ClusterSecrets::Parse(text);
  CHECK(secrets.ok()) << secrets.status();
  return std::make_shared<const security::ClusterSecrets>(*std::move(secrets));
}

inline PeerSecurity SecurityOf(const std::vector<uint8_t>& numbers) {
  PeerSecurity security;
  security.secrets = SecretsOf(numbers);
  // One stream for all endpoints of a test: no two handshakes get the same bytes.
  static base::Random random(20261130);
  security.draw = [](absl::Span<uint8_t> bytes) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
  };
  return security;
}

}  // namespace tokamak::transport::testing

// PeerSecurity says how an endpoint and its peers prove to each other that they belong to the
// cluster, and whether they seal what they say (lib/security, docs/security.md).
//
// Without secrets peers are not authenticated, and everybody who can send to this machine is taken
// for one. Both sides of a connection have secrets, or none has.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/types/span.h"
#include "lib/security/cluster_secret.h"

namespace tokamak::transport {

struct PeerSecurity {
  // Null: peers are not authenticated. Endpoint::SetSecrets replaces them, for later connections.
  std::shared_ptr<const security::ClusterSecrets> secrets;
  // False: messages travel as they are if the peer does not seal either, on a network that protects
  // itself.
  bool seals = true;
  // True if the processor has instructions for AES; else ChaCha20 is faster.
  bool aes = true;
  // Fills in bytes that nobody can guess, from any thread; needed with secrets.
  std::function<void(absl::Span<uint8_t>)> draw;
};

}  // namespace tokamak::transport

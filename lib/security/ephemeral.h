// Ephemeral is a pair of keys of X25519 (RFC 7748) for one handshake.
//
// Law: the random bytes that it is made of serve no other purpose, and no other handshake. The
// private half is wiped with the object. Thread rule: a plain value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "lib/security/secret_bytes.h"

namespace tokamak::security {

using PublicKey = std::array<uint8_t, 32>;

class Ephemeral final {
 public:
  // `random`: 32 bytes from a source that nobody can guess.
  explicit Ephemeral(absl::Span<const uint8_t> random);

  const PublicKey& public_key() const { return public_key_; }

  // Returns the secret shared with whom `peer` belongs to; nothing if it is all zeros, which a peer
  // can force upon us (RFC 7748, section 6.1) and an honest one never does.
  std::optional<Key> Agree(const PublicKey& peer) const;

 private:
  Key private_key_;
  PublicKey public_key_{};
};

}  // namespace tokamak::security

// Ephemeral is a pair of keys of X25519 (RFC 7748) for one handshake. To make one, or to agree with
// one, is a multiplication on the curve: some thirty microseconds.
//
// Law: the random bytes that it is made of serve no other purpose, and no other handshake. The
// private half is kept in OpenSSL's key, which wipes it. Thread rule: one owner, one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "lib/security/secret_bytes.h"

struct evp_pkey_st;  // EVP_PKEY of OpenSSL

namespace tokamak::security {

using PublicKey = std::array<uint8_t, 32>;

class Ephemeral final {
 public:
  // `random`: 32 bytes from a source that nobody can guess. The caller wipes them.
  explicit Ephemeral(absl::Span<const uint8_t> random);

  const PublicKey& public_key() const { return public_key_; }

  // Returns the secret shared with the owner of `peer`; nothing if it is all zeros, which a peer
  // can force upon us (RFC 7748, section 6.1) and an honest one never does.
  std::optional<Key> Agree(const PublicKey& peer) const;

 private:
  struct KeyDeleter {
    void operator()(evp_pkey_st* key) const;
  };
  using KeyPointer = std::unique_ptr<evp_pkey_st, KeyDeleter>;

  KeyPointer own_;
  PublicKey public_key_{};
};

}  // namespace tokamak::security

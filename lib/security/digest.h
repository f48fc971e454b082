// SHA-256 and what is made of it: HMAC (RFC 2104), the key derivation of the Noise Protocol
// Framework (revision 34, section 4.3) and the expansion of HKDF (RFC 5869, section 2.3).
//
// Thread rule: none, pure functions. They cannot fail but for want of memory, which ends the
// process.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/security/secret_bytes.h"

namespace tokamak::security {

using Hash = std::array<uint8_t, 32>;
using Pieces = std::initializer_list<absl::Span<const uint8_t>>;

inline absl::Span<const uint8_t> BytesOf(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Hashes the pieces as if they were one. Where one ends is not hashed: a caller to whom that
// matters puts lengths before them.
Hash Sha256(Pieces pieces);

// `key` is not empty. The result is as secret as what is done with it.
Key HmacSha256(absl::Span<const uint8_t> key, Pieces pieces);

// Noise's HKDF: two or three keys of a chaining key and of further input, which may be empty.
struct NoiseKeys {
  Key first, second, third;  // the third is zeros if two are asked for
};
NoiseKeys NoiseHkdf(const Key& chaining_key, absl::Span<const uint8_t> input, int keys);

// Returns the first block of HKDF-Expand: a key for the purpose that `info` says. Different
// `info` gives independent keys.
Key HkdfExpand(const Key& key, absl::Span<const uint8_t> info);

}  // namespace tokamak::security

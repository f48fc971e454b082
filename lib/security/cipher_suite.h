// CipherSuite is the cipher that a connection's handshake and messages are sealed with.
//
// Both use X25519 and SHA-256. Which one is taken is agreed in the hellos; since its name begins
// the handshake's hash, and the hellos are in its prologue, nobody else can choose it. The names
// are those of the Noise Protocol Framework, revision 34, section 8.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tokamak::security {

enum class CipherSuite : uint8_t {
  kAesGcm = 1,      // AES-256-GCM: for processors that have AES instructions
  kChaChaPoly = 2,  // ChaCha20-Poly1305: for others
};

// Returns the protocol's name in the Noise Protocol Framework.
absl::string_view NoiseName(CipherSuite suite);

// Returns the name for people: aes-256-gcm, chacha20-poly1305.
absl::string_view ToString(CipherSuite suite);

}  // namespace tokamak::security

#include "lib/security/cipher_suite.h"

namespace tokamak::security {

absl::string_view NoiseName(CipherSuite suite) {
  return suite == CipherSuite::kAesGcm ? "Noise_NNpsk0_25519_AESGCM_SHA256" : "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
}

absl::string_view ToString(CipherSuite suite) {
  return suite == CipherSuite::kAesGcm ? "aes-256-gcm" : "chacha20-poly1305";
}

}  // namespace tokamak::security

#include "lib/security/secret_bytes.h"

#include <openssl/crypto.h>

namespace tokamak::security {

void Wipe(absl::Span<uint8_t> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

}  // namespace tokamak::security

#include "lib/security/ephemeral.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>

#include "lib/base/check.h"

namespace tokamak::security {
namespace {

struct PkeyDeleter {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};
using Pkey = std::unique_ptr<EVP_PKEY, PkeyDeleter>;

Pkey PrivateHalf(const Key& key) {
  return Pkey(CHECK_NOTNULL(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, key.bytes().data(), Key::kSize)));
}

}  // namespace

Ephemeral::Ephemeral(absl::Span<const uint8_t> random) : private_key_(random) {
  size_t size = public_key_.size();
  CHECK_EQ(EVP_PKEY_get_raw_public_key(PrivateHalf(private_key_).get(), public_key_.data(), &size), 1);
  CHECK_EQ(size, public_key_.size());
}

std::optional<Key> Ephemeral::Agree(const PublicKey& peer) const {
  const Pkey own = PrivateHalf(private_key_);
  const Pkey other(CHECK_NOTNULL(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, peer.data(), peer.size())));
  const std::unique_ptr<EVP_PKEY_CTX, PkeyDeleter> context(CHECK_NOTNULL(EVP_PKEY_CTX_new(own.get(), nullptr)));
  CHECK_EQ(EVP_PKEY_derive_init(context.get()), 1);
  CHECK_EQ(EVP_PKEY_derive_set_peer(context.get(), other.get()), 1);
  Key shared;
  size_t size = Key::kSize;
  if (EVP_PKEY_derive(context.get(), shared.writable().data(), &size) != 1) {
    ERR_clear_error();  // OpenSSL refuses zeros itself
    return std::nullopt;
  }
  CHECK_EQ(size, Key::kSize);
  const Key zeros;
  if (CRYPTO_memcmp(shared.bytes().data(), zeros.bytes().data(), Key::kSize) == 0) return std::nullopt;
  return shared;
}

}  // namespace tokamak::security

#include "lib/security/ephemeral.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include "lib/base/check.h"

namespace tokamak::security {
namespace {

struct ContextDeleter {
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
};

}  // namespace

void Ephemeral::KeyDeleter::operator()(evp_pkey_st* key) const { EVP_PKEY_free(key); }

Ephemeral::Ephemeral(absl::Span<const uint8_t> random) {
  CHECK_EQ(random.size(), Key::kSize);
  own_.reset(CHECK_NOTNULL(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, random.data(), random.size())));
  size_t size = public_key_.size();
  CHECK_EQ(EVP_PKEY_get_raw_public_key(own_.get(), public_key_.data(), &size), 1);
  CHECK_EQ(size, public_key_.size());
}

std::optional<Key> Ephemeral::Agree(const PublicKey& peer) const {
  const std::unique_ptr<EVP_PKEY_CTX, ContextDeleter> context(CHECK_NOTNULL(EVP_PKEY_CTX_new(own_.get(), nullptr)));
  CHECK_EQ(EVP_PKEY_derive_init(context.get()), 1);
  const KeyPointer other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, peer.data(), peer.size()));
  Key shared;
  size_t size = Key::kSize;
  // OpenSSL refuses a secret of zeros itself.
  if (other == nullptr || EVP_PKEY_derive_set_peer(context.get(), other.get()) != 1 ||
      EVP_PKEY_derive(context.get(), shared.writable().data(), &size) != 1 || size != Key::kSize) {
    ERR_clear_error();
    return std::nullopt;
  }
  return shared;
}

}  // namespace tokamak::security

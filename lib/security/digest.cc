#include "lib/security/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <memory>
#include <vector>

#include "lib/base/check.h"

namespace tokamak::security {
namespace {

struct DigestDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

Hash Sha256(Pieces pieces) {
  const std::unique_ptr<EVP_MD_CTX, DigestDeleter> context(CHECK_NOTNULL(EVP_MD_CTX_new()));
  CHECK_EQ(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr), 1);
  for (const absl::Span<const uint8_t> piece : pieces) {
    CHECK_EQ(EVP_DigestUpdate(context.get(), piece.data(), piece.size()), 1);
  }
  Hash hash{};
  CHECK_EQ(EVP_DigestFinal_ex(context.get(), hash.data(), nullptr), 1);
  return hash;
}

Key HmacSha256(absl::Span<const uint8_t> key, Pieces pieces) {
  CHECK(!key.empty());
  std::vector<uint8_t> joined;
  size_t size = 1;  // HMAC wants a pointer
  for (const absl::Span<const uint8_t> piece : pieces) size += piece.size();
  joined.reserve(size);  // at once: a vector that grows leaves copies behind
  for (const absl::Span<const uint8_t> piece : pieces) joined.insert(joined.end(), piece.begin(), piece.end());
  Key result;
  const size_t length = joined.size();
  joined.push_back(0);
  const uint8_t* const done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), joined.data(), length,
                                   result.writable().data(), nullptr);
  CHECK(done != nullptr);
  Wipe(absl::MakeSpan(joined));
  return result;
}

NoiseKeys NoiseHkdf(const Key& chaining_key, absl::Span<const uint8_t> input) {
  const Key temporary = HmacSha256(chaining_key.bytes(), {input});
  static constexpr uint8_t kNumbers[] = {1, 2, 3};
  NoiseKeys keys;
  keys.first = HmacSha256(temporary.bytes(), {absl::MakeConstSpan(&kNumbers[0], 1)});
  keys.second = HmacSha256(temporary.bytes(), {keys.first.bytes(), absl::MakeConstSpan(&kNumbers[1], 1)});
  keys.third = HmacSha256(temporary.bytes(), {keys.second.bytes(), absl::MakeConstSpan(&kNumbers[2], 1)});
  return keys;
}

Key HkdfExpand(const Key& key, Pieces info) {
  static constexpr uint8_t kFirstBlock = 1;
  std::vector<uint8_t> joined;
  for (const absl::Span<const uint8_t> piece : info) joined.insert(joined.end(), piece.begin(), piece.end());
  return HmacSha256(key.bytes(), {joined, absl::MakeConstSpan(&kFirstBlock, 1)});
}

}  // namespace tokamak::security

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

NoiseKeys NoiseHkdf(const Key& chaining_key, absl::Span<const uint8_t> input, int keys) {
  CHECK(keys == 2 || keys == 3);
  const Key temporary = HmacSha256(chaining_key.bytes(), {input});
  static constexpr uint8_t kNumbers[] = {1, 2, 3};
  NoiseKeys made;
  made.first = HmacSha256(temporary.bytes(), {absl::MakeConstSpan(&kNumbers[0], 1)});
  made.second = HmacSha256(temporary.bytes(), {made.first.bytes(), absl::MakeConstSpan(&kNumbers[1], 1)});
  if (keys == 2) return made;
  made.third = HmacSha256(temporary.bytes(), {made.second.bytes(), absl::MakeConstSpan(&kNumbers[2], 1)});
  return made;
}

Key HkdfExpand(const Key& key, absl::Span<const uint8_t> info) {
  static constexpr uint8_t kFirstBlock = 1;
  return HmacSha256(key.bytes(), {info, absl::MakeConstSpan(&kFirstBlock, 1)});
}

}  // namespace tokamak::security

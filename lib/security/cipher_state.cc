#include "lib/security/cipher_state.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <array>

#include "lib/base/bytes.h"
#include "lib/base/check.h"

namespace tokamak::security {
namespace {

constexpr uint64_t kRekeyNumber = UINT64_MAX;  // reserved by Noise
constexpr size_t kNonceSize = 12;

const EVP_CIPHER* CipherOf(CipherSuite suite) {
  return suite == CipherSuite::kAesGcm ? EVP_aes_256_gcm() : EVP_chacha20_poly1305();
}

void Feed(evp_cipher_ctx_st* context, uint8_t* out, absl::Span<const uint8_t> in) {
  if (in.empty()) return;
  int done = 0;
  CHECK_EQ(EVP_CipherUpdate(context, out, &done, in.data(), static_cast<int>(in.size())), 1);
  CHECK_EQ(static_cast<size_t>(done), in.size());
}

}  // namespace

CipherState::CipherState(CipherSuite suite) : suite_(suite), context_(CHECK_NOTNULL(EVP_CIPHER_CTX_new())) {
  CHECK_EQ(EVP_CipherInit_ex(context_.get(), CipherOf(suite_), nullptr, nullptr, nullptr, 1), 1);
}
CipherState::CipherState(CipherState&&) noexcept = default;
CipherState& CipherState::operator=(CipherState&&) noexcept = default;
CipherState::~CipherState() = default;

void CipherState::ContextDeleter::operator()(evp_cipher_ctx_st* context) const { EVP_CIPHER_CTX_free(context); }

void CipherState::SetKey(Key key) {
  CHECK_EQ(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, key.bytes().data(), nullptr, 1), 1);
  has_key_ = true;
  next_ = 0;
}

void CipherState::Seal(absl::Span<const uint8_t> additional, absl::Span<uint8_t> message) {
  CHECK(has_key_);
  CHECK_NE(next_, kRekeyNumber);
  SealAs(next_, additional, message);
  ++next_;
}

bool CipherState::Open(absl::Span<const uint8_t> additional, absl::Span<uint8_t> message) {
  CHECK(has_key_);
  CHECK_NE(next_, kRekeyNumber);
  if (message.size() < kTagSize) {
    Wipe(message);
    return false;
  }
  const absl::Span<uint8_t> text = message.first(message.size() - kTagSize);
  StartMessage(next_, false);
  Feed(context_.get(), nullptr, additional);
  Feed(context_.get(), text.data(), text);
  uint8_t* const tag = message.data() + text.size();
  CHECK_EQ(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kTagSize, tag), 1);
  int rest = 0;
  std::array<uint8_t, kTagSize> none{};
  if (EVP_CipherFinal_ex(context_.get(), none.data(), &rest) != 1) {
    ERR_clear_error();
    Wipe(message);  // what nobody vouches for, nobody shall read
    return false;
  }
  ++next_;
  return true;
}

void CipherState::Rekey() {
  CHECK(has_key_);
  SecretBytes<Key::kSize + kTagSize> sealed_zeros;
  SealAs(kRekeyNumber, {}, sealed_zeros.writable());
  const uint64_t next = next_;
  SetKey(Key(sealed_zeros.bytes().first(Key::kSize)));
  next_ = next;
}

void CipherState::StartMessage(uint64_t number, bool sealing) {
  std::array<uint8_t, kNonceSize> nonce{};
  if (suite_ == CipherSuite::kAesGcm) {
    base::StoreBig64(nonce.data() + 4, number);
  } else {
    base::StoreLittle<uint64_t>(nonce.data() + 4, number);
  }
  CHECK_EQ(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, nonce.data(), sealing ? 1 : 0), 1);
}

void CipherState::SealAs(uint64_t number, absl::Span<const uint8_t> additional, absl::Span<uint8_t> message) {
  CHECK_GE(message.size(), kTagSize);
  const absl::Span<uint8_t> text = message.first(message.size() - kTagSize);
  StartMessage(number, true);
  Feed(context_.get(), nullptr, additional);
  Feed(context_.get(), text.data(), text);
  int rest = 0;
  uint8_t* const tag = message.data() + text.size();
  CHECK_EQ(EVP_CipherFinal_ex(context_.get(), tag, &rest), 1);
  CHECK_EQ(rest, 0);
  CHECK_EQ(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kTagSize, tag), 1);
}

}  // namespace tokamak::security

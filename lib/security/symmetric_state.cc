#include "lib/security/symmetric_state.h"

#include <algorithm>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::security {

SymmetricState::SymmetricState(CipherSuite suite) : suite_(suite), cipher_(suite) {
  const absl::string_view name = NoiseName(suite);
  if (name.size() <= hash_.size()) {
    std::copy(name.begin(), name.end(), hash_.begin());
  } else {
    hash_ = Sha256({BytesOf(name)});
  }
  chaining_key_ = Key(hash_);
}

void SymmetricState::MixHash(absl::Span<const uint8_t> data) { hash_ = Sha256({hash_, data}); }

void SymmetricState::MixKey(absl::Span<const uint8_t> input) {
  NoiseKeys keys = NoiseHkdf(chaining_key_, input, 2);
  chaining_key_ = std::move(keys.first);
  cipher_.SetKey(std::move(keys.second));
}

void SymmetricState::MixKeyAndHash(absl::Span<const uint8_t> input) {
  NoiseKeys keys = NoiseHkdf(chaining_key_, input, 3);
  chaining_key_ = std::move(keys.first);
  MixHash(keys.second.bytes());
  cipher_.SetKey(std::move(keys.third));
}

void SymmetricState::EncryptAndHash(absl::Span<const uint8_t> plain, std::vector<uint8_t>* message) {
  const size_t start = message->size();
  message->insert(message->end(), plain.begin(), plain.end());
  message->resize(message->size() + kTagSize);
  const absl::Span<uint8_t> sealed = absl::MakeSpan(*message).subspan(start);
  cipher_.Seal(hash_, sealed);
  MixHash(sealed);
}

bool SymmetricState::DecryptAndHash(absl::Span<const uint8_t> sealed, std::vector<uint8_t>* plain) {
  std::vector<uint8_t> opened(sealed.begin(), sealed.end());
  if (!cipher_.Open(hash_, absl::MakeSpan(opened))) return false;
  MixHash(sealed);
  opened.resize(opened.size() - kTagSize);
  *plain = std::move(opened);
  return true;
}

std::pair<CipherState, CipherState> SymmetricState::Split() const {
  NoiseKeys keys = NoiseHkdf(chaining_key_, {}, 2);
  std::pair<CipherState, CipherState> ciphers{CipherState(suite_), CipherState(suite_)};
  ciphers.first.SetKey(std::move(keys.first));
  ciphers.second.SetKey(std::move(keys.second));
  return ciphers;
}

Key SymmetricState::Export(absl::string_view label) const {
  CHECK(!label.empty());
  return std::move(NoiseHkdf(chaining_key_, BytesOf(label), 2).first);
}

}  // namespace tokamak::security

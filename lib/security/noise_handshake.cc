#include "lib/security/noise_handshake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::security {

NoiseHandshake::NoiseHandshake(Role role, CipherSuite suite, absl::Span<const uint8_t> prologue,
                               absl::Span<const uint8_t> secret, absl::Span<const uint8_t> random)
    : role_(role), random_(random), state_(suite) {
  CHECK_EQ(secret.size(), Key::kSize);
  state_->MixHash(prologue);
  state_->MixKeyAndHash(secret);  // the first token of the first message, for both sides
}

absl::StatusOr<std::vector<uint8_t>> NoiseHandshake::Write(absl::Span<const uint8_t> payload) {
  CHECK(state_ && !written_ && read_ == (role_ == Role::kResponder));
  CHECK_LE(payload.size(), kMaxNoiseMessage - kNoiseOverhead);
  written_ = true;
  const PublicKey& key = own_.emplace(random_.bytes()).public_key();
  random_ = Key();
  std::vector<uint8_t> message(key.begin(), key.end());
  state_->MixHash(key);
  state_->MixKey(key);  // section 9.2: with a pre-shared key, ephemeral keys are mixed in as well
  if (role_ == Role::kResponder) {
    if (absl::Status s = MixSharedSecret(); !s.ok()) return s;
  }
  state_->EncryptAndHash(payload, &message);
  return message;
}

absl::StatusOr<std::vector<uint8_t>> NoiseHandshake::Read(absl::Span<const uint8_t> message) {
  CHECK(state_ && !read_ && written_ == (role_ == Role::kInitiator));
  if (message.size() < kNoiseOverhead || message.size() > kMaxNoiseMessage) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat("a handshake message of ", message.size(), " bytes")));
  }
  read_ = true;
  std::copy_n(message.begin(), peer_.size(), peer_.begin());
  if (own_ && peer_ == own_->public_key()) {
    return Refuse(absl::PermissionDeniedError("our own key was sent back to us"));
  }
  state_->MixHash(peer_);
  state_->MixKey(peer_);
  if (role_ == Role::kInitiator) {
    if (absl::Status s = MixSharedSecret(); !s.ok()) return s;
  }
  std::vector<uint8_t> payload;
  if (!state_->DecryptAndHash(message.subspan(peer_.size()), &payload)) {
    return Refuse(absl::PermissionDeniedError(
        "the peer has another secret, or sees another connection than we do (addresses, queue pairs, hellos)"));
  }
  return payload;
}

std::pair<CipherState, CipherState> NoiseHandshake::Split() {
  CHECK(complete());
  std::pair<CipherState, CipherState> ciphers = state_->Split();
  state_.reset();
  return ciphers;
}

Key NoiseHandshake::Export(absl::string_view label) const {
  CHECK(complete());
  return state_->Export(label);
}

absl::Status NoiseHandshake::MixSharedSecret() {
  const std::optional<Key> shared = own_->Agree(peer_);
  if (!shared) return Refuse(absl::PermissionDeniedError("the peer's key makes a shared secret of zeros"));
  state_->MixKey(shared->bytes());
  return absl::OkStatus();
}

absl::Status NoiseHandshake::Refuse(absl::Status why) {
  state_.reset();
  own_.reset();
  return why;
}

}  // namespace tokamak::security

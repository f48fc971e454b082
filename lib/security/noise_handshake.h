// NoiseHandshake is one side of the handshake NNpsk0 of the Noise Protocol Framework (revision 34,
// sections 5.3, 7.5 and 9):
//
//   -> psk, e        initiator: its ephemeral key, and a payload sealed under the secret
//   <- e, ee         responder: its own, and a payload sealed under the secret and both keys
//
// It knows no time and no confirmation: see Handshake, which has both. Each message is 48 bytes and
// its payload. The payload of the first message can be read by whoever gets to know the secret
// later, and can be a replay.
//
// A stranger's first message costs a responder three hashes, seven HMACs and a decryption: its own
// key is made when it answers.
//
// Law: after a message that was refused only complete() may be called, and the keys are wiped. One
// owner, one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "lib/security/cipher_state.h"
#include "lib/security/ephemeral.h"
#include "lib/security/role.h"
#include "lib/security/symmetric_state.h"

namespace tokamak::security {

constexpr size_t kNoiseOverhead = sizeof(PublicKey) + kTagSize;  // bytes of a message without payload
constexpr size_t kMaxNoiseMessage = 65535;                       // bytes: section 3

class NoiseHandshake final {
 public:
  // `random`, 32 bytes that nobody can guess and that serve nothing else, becomes the ephemeral
  // key; it is copied, and the caller wipes its own. `secret` is 32 bytes; both sides have the
  // same, and the same prologue.
  NoiseHandshake(Role role, CipherSuite suite, absl::Span<const uint8_t> prologue, absl::Span<const uint8_t> secret,
                 absl::Span<const uint8_t> random);

  // Returns this side's message. To be called once: at first by the initiator, after Read by the
  // responder. kPermissionDenied: the peer's key forces the shared secret to zero.
  absl::StatusOr<std::vector<uint8_t>> Write(absl::Span<const uint8_t> payload);

  // Takes the peer's message and returns its payload. To be called once: at first by the responder,
  // after Write by the initiator. kInvalidArgument: no message has this size. kPermissionDenied:
  // another secret or prologue, a changed message, our own key, or a shared secret of zeros.
  absl::StatusOr<std::vector<uint8_t>> Read(absl::Span<const uint8_t> message);

  // True if both messages have been exchanged and were right, until Split.
  bool complete() const { return written_ && read_ && state_; }

  // Returns the hash of the facts and the messages so far. When complete(), it is equal on both
  // sides, and no other connection has it.
  const Hash& hash() const { return state_->hash(); }

  // Needs complete(). Each label has a key of its own.
  Key Export(absl::string_view label) const;

  // Returns the ciphers of the initiator and of the responder, at their message 0. To be called
  // once, and last: a second pair would number its messages like the first. Needs complete().
  std::pair<CipherState, CipherState> Split();

 private:
  absl::Status MixSharedSecret();
  absl::Status Refuse(absl::Status why);

  const Role role_;
  Key random_;
  std::optional<Ephemeral> own_;  // from Write on
  PublicKey peer_{};
  bool written_ = false;
  bool read_ = false;
  std::optional<SymmetricState> state_;  // nothing: a message was refused, or it is split
};

}  // namespace tokamak::security

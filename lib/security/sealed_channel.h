// SealedChannel seals the messages of one connection after its handshake, and opens the peer's.
//
// Messages are the transport messages of the Noise Protocol Framework (revision 34, section 5): an
// AEAD whose nonce is the number of the message in its direction. The number is not sent, for the
// queue pair below is ordered: what was replayed, lost, moved, cut or changed does not open. Each
// direction has a key of its own, so that a message that is sent back does not open either.
//
// Both sides go over to a new key (Rekey, section 11.3) after each kMessagesBeforeRekey messages of
// a direction, without saying so. With messages of kMaxSealedMessage bytes that is 2^34 blocks of
// 16 bytes under one key, no more than what TLS 1.3 allows AES-GCM (RFC 8446, section 5.5).
//
// Noise's own bound of 65535 bytes for a message is not kept here: it is a framing for streams, and
// our messages are as long as the peer's slots. Ciphers seal up to 2^36 bytes.
//
// Law: after one message that did not open, nothing is opened or sealed any more: the connection
// ends. Nothing is allocated for a message, and none is copied. One owner, one thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/security/cipher_state.h"
#include "lib/security/role.h"

namespace tokamak::security {

constexpr size_t kMaxSealedMessage = 256 * 1024;              // bytes, the tag among them
constexpr uint64_t kMessagesBeforeRekey = uint64_t{1} << 20;  // in one direction

class SealedChannel final {
 public:
  // The ciphers of NoiseHandshake::Split, or of another agreement on keys. Both sides have the same
  // `rekey_after`, at least 1 and at most kMessagesBeforeRekey; fewer is for tests.
  SealedChannel(Role role, CipherState initiator, CipherState responder, uint64_t rekey_after = kMessagesBeforeRekey);

  // Seals all of `message` but its last kTagSize bytes, which become the tag. `additional`, at most
  // kMaxSealedMessage bytes, is not sent; the peer has to know it. Messages must be sent in the
  // order in which they were sealed. kInvalidArgument: the size is out of bounds, and nothing has
  // changed. kFailedPrecondition: the channel is broken.
  absl::Status Seal(absl::Span<const uint8_t> additional, absl::Span<uint8_t> message);

  // Opens the peer's next message where it lies and returns the part that is plain text, which is
  // empty if nothing but a tag was sent. kDataLoss: it is not the next message; its bytes are
  // zeros, and the channel is broken. kFailedPrecondition: it was broken before.
  absl::StatusOr<absl::Span<uint8_t>> Open(absl::Span<const uint8_t> additional, absl::Span<uint8_t> message);

  bool broken() const { return broken_; }
  uint64_t sealed() const { return outbound_.next(); }  // messages
  uint64_t opened() const { return inbound_.next(); }

 private:
  void RekeyInTime(CipherState& cipher) const;

  CipherState outbound_;
  CipherState inbound_;
  uint64_t rekey_after_;
  bool broken_ = false;
};

}  // namespace tokamak::security

// Handshake is the authentication of one connection as one side sees it: it takes the peer's
// messages and the passing of time, and returns what to do next.
//
//   initiator                                             responder
//            -- 1: psk, e      48 bytes and a payload -->
//            <-- 2: e, ee      48 bytes and a payload --
//   is established
//            -- 3: nothing, sealed        16 bytes    -->  is established
//
// Messages 1 and 2 are NNpsk0 of the Noise Protocol Framework (noise_handshake.h), message 3 is the
// first transport message of the initiator. It shows that the initiator is there now: message 1 can
// be a replay of an earlier one, from who does not know the secret, if a connection has the same
// facts once more.
//
// It has no clock, timer, queue pair or random number of its own: its owner carries out
// HandshakeActions. Nothing that came from the peer may be served or believed before
// kEstablished, its payload not either. A refused peer is answered with nothing at all.
//
// Law: if both sides become established, they have the same secret, facts and payloads, and keys
// that nobody else has, even if the secret becomes known later. Without the secret nobody makes
// a side become established. (docs/models/handshake.pml shows the agreement, not the secrecy.)
// Law: a phase other than kEstablished and kRefused lasts at most kHandshakeTime, even if the peer
// stays silent. Thread rule: none; one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/time.h"
#include "lib/security/cipher_suite.h"
#include "lib/security/cluster_secret.h"
#include "lib/security/connection_keys.h"
#include "lib/security/noise_handshake.h"
#include "lib/security/role.h"
#include "lib/security/sealed_channel.h"

namespace tokamak::security {

constexpr base::Duration kHandshakeTime = base::Seconds(5);
constexpr size_t kMaxHandshakePayload = 256;                                    // bytes
constexpr size_t kMaxHandshakeMessage = kNoiseOverhead + kMaxHandshakePayload;  // bytes: receives have room for it

enum class HandshakePhase : uint8_t {
  kAwaitsFirst,       // responder: for message 1
  kAwaitsSecond,      // initiator: for message 2
  kAwaitsConfirming,  // responder: for message 3
  kEstablished,       // over: Take
  kRefused,           // over: the connection ends
};
const char* ToString(HandshakePhase phase);

struct HandshakeActions {
  std::vector<uint8_t> send;                  // a message for the peer; empty: none
  std::optional<base::Duration> limit_after;  // start the timer that calls OnLimit
  bool stop_timer = false;
  std::optional<absl::Status> end;  // OK: established. Otherwise refused: end the connection, silently
};

// How two sides speak after their handshake.
struct SecuredConnection {
  SealedChannel channel;
  ConnectionKeys keys;
};

class Handshake final {
 public:
  struct Identity {
    Role role = Role::kInitiator;
    CipherSuite suite = CipherSuite::kAesGcm;
    absl::Span<const uint8_t> prologue;  // ConnectionFacts::Prologue
    const ClusterSecret* secret = nullptr;
    // 32 bytes that nobody can guess, for this handshake alone. The caller wipes them.
    absl::Span<const uint8_t> random;
    absl::Span<const uint8_t> payload;  // for the peer, at most kMaxHandshakePayload bytes
  };

  // Begins: `actions` is what to do first. Copies what it needs of `identity`. The initiator's
  // payload is no secret to who gets to know the cluster's secret later; the responder's is.
  Handshake(const Identity& identity, HandshakeActions* actions);
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // After the end both do nothing: what the peer sends, and a timer that is late, do not matter.
  HandshakeActions OnMessage(absl::Span<const uint8_t> message);
  HandshakeActions OnLimit();

  HandshakePhase phase() const { return phase_; }
  bool ended() const { return phase_ >= HandshakePhase::kEstablished; }

  // The peer's payload, authenticated. kEstablished.
  absl::Span<const uint8_t> peer_payload() const;

  // Hands over the connection's keys. kEstablished; once.
  SecuredConnection Take();

 private:
  void OnFirst(absl::Span<const uint8_t> message, HandshakeActions* actions);
  void OnSecond(absl::Span<const uint8_t> message, HandshakeActions* actions);
  void OnConfirming(absl::Span<const uint8_t> message, HandshakeActions* actions);
  void DeriveKeys();
  void Enter(HandshakePhase phase);
  void Establish(HandshakeActions* actions);
  void Refuse(absl::Status why, HandshakeActions* actions);

  const Role role_;
  const CipherSuite suite_;
  HandshakePhase phase_;
  std::unique_ptr<NoiseHandshake> noise_;  // until the keys are derived, or the peer refused
  std::vector<uint8_t> payload_;
  std::vector<uint8_t> peer_payload_;
  std::unique_ptr<SecuredConnection> secured_;  // from then on, until Take
};

}  // namespace tokamak::security

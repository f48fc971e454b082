#include "lib/security/handshake.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::security {
namespace {

constexpr size_t kConfirmingSize = kTagSize;  // bytes: nothing, sealed

}  // namespace

const char* ToString(HandshakePhase phase) {
  switch (phase) {
    case HandshakePhase::kAwaitsFirst:
      return "awaits the first message";
    case HandshakePhase::kAwaitsSecond:
      return "awaits the second message";
    case HandshakePhase::kAwaitsConfirming:
      return "awaits the confirming message";
    case HandshakePhase::kEstablished:
      return "established";
    case HandshakePhase::kRefused:
      return "refused";
  }
  return "?";
}

Handshake::Handshake(const Identity& identity, HandshakeActions* actions)
    : role_(identity.role),
      suite_(identity.suite),
      phase_(role_ == Role::kInitiator ? HandshakePhase::kAwaitsSecond : HandshakePhase::kAwaitsFirst),
      noise_(std::make_unique<NoiseHandshake>(identity.role, identity.suite, identity.prologue,
                                              CHECK_NOTNULL(identity.secret)->bytes(), identity.random)),
      payload_(identity.payload.begin(), identity.payload.end()) {
  CHECK_LE(payload_.size(), kMaxHandshakePayload);
  actions->limit_after = kHandshakeTime;
  if (role_ == Role::kResponder) return;
  absl::StatusOr<std::vector<uint8_t>> first = noise_->Write(payload_);
  CHECK(first.ok()) << first.status();  // no peer has part in it
  actions->send = *std::move(first);
}

HandshakeActions Handshake::OnMessage(absl::Span<const uint8_t> message) {
  HandshakeActions actions;
  if (ended()) return actions;
  if (message.size() > kMaxHandshakeMessage) {
    Refuse(absl::InvalidArgumentError(absl::StrCat("a handshake message of ", message.size(), " bytes")), &actions);
    return actions;
  }
  switch (phase_) {
    case HandshakePhase::kAwaitsFirst:
      OnFirst(message, &actions);
      break;
    case HandshakePhase::kAwaitsSecond:
      OnSecond(message, &actions);
      break;
    case HandshakePhase::kAwaitsConfirming:
      OnConfirming(message, &actions);
      break;
    case HandshakePhase::kEstablished:
    case HandshakePhase::kRefused:
      break;
  }
  return actions;
}

HandshakeActions Handshake::OnLimit() {
  HandshakeActions actions;
  if (!ended()) Refuse(absl::DeadlineExceededError("the peer did not say who it is in time"), &actions);
  return actions;
}

absl::Span<const uint8_t> Handshake::peer_payload() const {
  CHECK(phase_ == HandshakePhase::kEstablished);
  return peer_payload_;
}

SecuredConnection Handshake::Take() {
  CHECK(phase_ == HandshakePhase::kEstablished && secured_ != nullptr);
  SecuredConnection secured = std::move(*secured_);
  secured_.reset();
  return secured;
}

void Handshake::OnFirst(absl::Span<const uint8_t> message, HandshakeActions* actions) {
  absl::StatusOr<std::vector<uint8_t>> payload = noise_->Read(message);
  if (!payload.ok()) return Refuse(payload.status(), actions);
  absl::StatusOr<std::vector<uint8_t>> second = noise_->Write(payload_);
  if (!second.ok()) return Refuse(second.status(), actions);
  peer_payload_ = *std::move(payload);
  actions->send = *std::move(second);
  DeriveKeys();
  Enter(HandshakePhase::kAwaitsConfirming);
}

void Handshake::OnSecond(absl::Span<const uint8_t> message, HandshakeActions* actions) {
  absl::StatusOr<std::vector<uint8_t>> payload = noise_->Read(message);
  if (!payload.ok()) return Refuse(payload.status(), actions);
  peer_payload_ = *std::move(payload);
  DeriveKeys();
  std::vector<uint8_t> confirming(kConfirmingSize);
  const absl::Status sealed = secured_->channel.Seal({}, absl::MakeSpan(confirming));
  CHECK(sealed.ok()) << sealed;
  actions->send = std::move(confirming);
  Establish(actions);
}

void Handshake::OnConfirming(absl::Span<const uint8_t> message, HandshakeActions* actions) {
  if (message.size() != kConfirmingSize) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat("a confirming message of ", message.size(), " bytes")),
                  actions);
  }
  std::vector<uint8_t> confirming(message.begin(), message.end());
  if (!secured_->channel.Open({}, absl::MakeSpan(confirming)).ok()) {
    return Refuse(
        absl::PermissionDeniedError("the peer's first message was a replay, or its confirming one was changed"),
        actions);
  }
  Establish(actions);
}

void Handshake::DeriveKeys() {
  ConnectionKeys keys(role_, suite_, noise_->Export("tokamak connection keys"), noise_->hash());
  std::pair<CipherState, CipherState> ciphers = noise_->Split();
  secured_ = std::make_unique<SecuredConnection>(
      SecuredConnection{SealedChannel(role_, std::move(ciphers.first), std::move(ciphers.second)), std::move(keys)});
  noise_.reset();
}

// Changes the phase, the only place that does: each step leads to a later one.
void Handshake::Enter(HandshakePhase phase) {
  CHECK(!ended() && phase > phase_) << ToString(phase_) << " -> " << ToString(phase);
  phase_ = phase;
}

void Handshake::Establish(HandshakeActions* actions) {
  Enter(HandshakePhase::kEstablished);
  actions->stop_timer = true;
  actions->end = absl::OkStatus();
}

void Handshake::Refuse(absl::Status why, HandshakeActions* actions) {
  Enter(HandshakePhase::kRefused);
  noise_.reset();
  secured_.reset();
  peer_payload_.clear();
  actions->stop_timer = true;
  actions->send.clear();
  actions->end = std::move(why);
}

}  // namespace tokamak::security

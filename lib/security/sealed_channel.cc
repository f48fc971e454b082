#include "lib/security/sealed_channel.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"

namespace tokamak::security {
namespace {

bool InBounds(absl::Span<const uint8_t> additional, absl::Span<const uint8_t> message) {
  return message.size() >= kTagSize && message.size() <= kMaxSealedMessage && additional.size() <= kMaxSealedMessage;
}

absl::Status IsBroken() {
  return absl::FailedPreconditionError("the connection has ended, since a message of the peer did not open");
}

}  // namespace

SealedChannel::SealedChannel(Role role, CipherState initiator, CipherState responder, uint64_t rekey_after)
    : outbound_(std::move(role == Role::kInitiator ? initiator : responder)),
      inbound_(std::move(role == Role::kInitiator ? responder : initiator)),
      rekey_after_(rekey_after) {
  CHECK(outbound_.has_key() && inbound_.has_key());
  CHECK(rekey_after_ > 0 && rekey_after_ <= kMessagesBeforeRekey);
}

absl::Status SealedChannel::Seal(absl::Span<const uint8_t> additional, absl::Span<uint8_t> message) {
  if (broken_) return IsBroken();
  if (!InBounds(additional, message)) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", message.size(), " bytes cannot be sealed"));
  }
  outbound_.Seal(additional, message);
  RekeyInTime(outbound_);
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<uint8_t>> SealedChannel::Open(absl::Span<const uint8_t> additional,
                                                        absl::Span<uint8_t> message) {
  if (broken_) return IsBroken();
  if (!InBounds(additional, message)) {
    broken_ = true;
    Wipe(message);
    return absl::DataLossError(absl::StrCat("a sealed message of ", message.size(), " bytes"));
  }
  if (!inbound_.Open(additional, message)) {
    broken_ = true;
    return absl::DataLossError(
        absl::StrCat("message ", inbound_.next(), " did not open: it was changed, cut, repeated or moved on the way"));
  }
  RekeyInTime(inbound_);
  return message.first(message.size() - kTagSize);
}

void SealedChannel::RekeyInTime(CipherState& cipher) const {
  if (cipher.next() % rekey_after_ == 0) cipher.Rekey();
}

}  // namespace tokamak::security

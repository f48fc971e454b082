#include "tests/security/two_sides.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/security/digest.h"

namespace tokamak::security {

Bytes Draw(base::Random& random, size_t size) {
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
  return bytes;
}

Bytes BytesOfText(absl::string_view text) { return Bytes(text.begin(), text.end()); }

std::string TextOf(absl::Span<const uint8_t> bytes) { return std::string(bytes.begin(), bytes.end()); }

std::unique_ptr<Handshake> MakeSide(Role role, const SideOptions& options, absl::Span<const uint8_t> random,
                                    HandshakeActions* begun) {
  const ClusterSecret secret(options.secret);
  ConnectionFacts facts;
  facts.protocol_version = options.version;
  facts.suite = options.suite;
  facts.secret = secret.id();
  facts.initiator = {BytesOf(options.initiator_address), options.initiator_queue_pair,
                     BytesOf(options.initiator_hello)};
  facts.responder = {BytesOf(options.responder_address), options.responder_queue_pair,
                     BytesOf(options.responder_hello)};
  const Bytes prologue = facts.Prologue();
  Handshake::Identity identity;
  identity.role = role;
  identity.suite = options.suite;
  identity.prologue = prologue;
  identity.secret = &secret;
  identity.random = random;
  identity.payload = BytesOf(options.payload);
  return std::make_unique<Handshake>(identity, begun);
}

TwoSides::TwoSides(uint64_t seed, const SideOptions& ours, const SideOptions& theirs)
    : random(seed),
      initiator(MakeSide(Role::kInitiator, ours, Draw(random, 32), &initiator_begun)),
      responder(MakeSide(Role::kResponder, theirs, Draw(random, 32), &responder_begun)),
      first(initiator_begun.send) {}

bool TwoSides::Run() {
  second = responder->OnMessage(first).send;
  if (responder->ended()) return false;
  confirming = initiator->OnMessage(second).send;
  if (initiator->phase() != HandshakePhase::kEstablished) return false;
  responder->OnMessage(confirming);
  return responder->phase() == HandshakePhase::kEstablished;
}

TwoChannels::TwoChannels(CipherSuite suite) {
  SideOptions options;
  options.suite = suite;
  TwoSides sides(1, options, options);
  CHECK(sides.Run());
  initiator.emplace(sides.initiator->Take());
  responder.emplace(sides.responder->Take());
}

Bytes Sealed(SealedChannel& channel, absl::string_view plain, absl::string_view additional) {
  Bytes message = BytesOfText(plain);
  message.resize(message.size() + kTagSize);
  const absl::Status sealed = channel.Seal(BytesOf(additional), absl::MakeSpan(message));
  CHECK(sealed.ok()) << sealed;
  return message;
}

}  // namespace tokamak::security

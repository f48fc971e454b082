// Messages of a handshake, sealed messages and proofs of queue pairs, changed in any way that
// somebody without the secret could, and the text of a secret's file. Nothing but the genuine is
// taken.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/check.h"
#include "lib/security/cluster_secret.h"
#include "lib/security/connection_keys.h"
#include "lib/security/handshake.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/security/two_sides.h"

namespace tokamak::fuzz {
namespace {

using namespace security;  // NOLINT: its whole wire is the subject

void TrySecrets(const std::string& text) {
  const absl::StatusOr<ClusterSecrets> secrets = ClusterSecrets::Parse(text);
  if (!secrets.ok()) {
    CHECK(secrets.status().message().find('\n') == absl::string_view::npos);
    return;
  }
  const std::string written = secrets->first().ToText();
  CHECK(text.find(written) != std::string::npos);
  const absl::StatusOr<ClusterSecrets> again = ClusterSecrets::Parse(written);
  CHECK(again.ok() && again->first().id() == secrets->first().id());
}

// Changes `genuine` as the input says.
Bytes Change(Bytes bytes, Input& input) {
  switch (input.Below(4)) {
    case 0:
      for (uint32_t left = 1 + input.Below(4); left > 0 && !bytes.empty(); --left) {
        bytes[input.Take<uint16_t>() % bytes.size()] ^= input.Take<uint8_t>();
      }
      break;
    case 1:
      bytes.resize(input.Take<uint16_t>() % (2 * bytes.size() + 1));
      break;
    case 2: {
      const absl::Span<const uint8_t> other = input.Bytes(kMaxHandshakeMessage + 1);
      bytes.assign(other.begin(), other.end());
      break;
    }
    case 3:
      break;
  }
  return bytes;
}

void TryHandshake(Input& input) {
  SideOptions options;
  options.suite = input.Flag() ? CipherSuite::kAesGcm : CipherSuite::kChaChaPoly;
  TwoSides sides(1, options, options);
  bool genuine = true;
  const auto deliver = [&](Handshake& to, const Bytes& message) {
    const Bytes delivered = Change(message, input);
    genuine = genuine && delivered == message;
    const HandshakeActions actions = to.OnMessage(delivered);
    CHECK(genuine || actions.send.empty()) << "a stranger is answered";
    CHECK_EQ(to.ended() && to.phase() == HandshakePhase::kEstablished, actions.end && actions.end->ok());
    return actions.send;
  };
  const Bytes second = deliver(*sides.responder, sides.first);
  if (!sides.responder->ended()) {
    const Bytes confirming = deliver(*sides.initiator, second);
    CHECK_EQ(genuine, sides.initiator->phase() == HandshakePhase::kEstablished);
    if (genuine) deliver(*sides.responder, confirming);
  }
  CHECK_EQ(genuine, sides.responder->phase() == HandshakePhase::kEstablished);
  for (Handshake* side : {sides.initiator.get(), sides.responder.get()}) {
    const HandshakePhase before = side->phase();
    CHECK(side->OnLimit().end.has_value() == (before < HandshakePhase::kEstablished));
    CHECK(side->ended() && !side->OnMessage(sides.first).end);
  }
}

void TryChannel(Input& input) {
  TwoChannels both(input.Flag() ? CipherSuite::kAesGcm : CipherSuite::kChaChaPoly);
  std::vector<Bytes> sent;
  std::vector<Bytes> plain;
  size_t expected = 0;
  while (!input.empty() && sent.size() < 64 && !both.responder->channel.broken()) {
    const absl::Span<const uint8_t> text = input.Bytes(300);
    plain.emplace_back(text.begin(), text.end());
    sent.push_back(Sealed(both.initiator->channel, TextOf(text), "header"));
    const size_t which = input.Flag() ? expected : input.Below(256) % sent.size();
    Bytes message = Change(sent[which], input);
    const bool right = which == expected && message == sent[which];
    const absl::StatusOr<absl::Span<uint8_t>> opened =
        both.responder->channel.Open(BytesOf("header"), absl::MakeSpan(message));
    CHECK_EQ(opened.ok(), right);
    CHECK_EQ(both.responder->channel.broken(), !right);
    if (right) CHECK(Bytes(opened->begin(), opened->end()) == plain[expected++]);
  }
}

void TryProof(Input& input) {
  TwoChannels both;
  QueuePairFacts facts;
  facts.queue = 1;
  facts.attempt = 1;
  const Bytes hello = BytesOfText("hello");
  facts.hello = hello;
  const Proof proof = both.initiator->keys.Prove(facts);
  const Bytes right(proof.begin(), proof.end());
  const Bytes changed_hello = Change(hello, input), given = Change(right, input);
  facts.hello = changed_hello;
  CHECK_EQ(both.responder->keys.Check(facts, given).ok(), given == right && changed_hello == hello);
}

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tokamak::fuzz;  // NOLINT: in a function
  Input input(data, size);
  switch (input.Below(4)) {
    case 0:
      TrySecrets(tokamak::security::TextOf(input.Rest()));
      break;
    case 1:
      TryHandshake(input);
      break;
    case 2:
      TryChannel(input);
      break;
    case 3:
      TryProof(input);
      break;
  }
  return 0;
}

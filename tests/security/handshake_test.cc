#include "lib/security/handshake.h"

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/security/two_sides.h"
#include "tests/support/hex.h"

namespace tokamak::security {
namespace {

class HandshakeTest : public testing::TestWithParam<CipherSuite> {
 protected:
  HandshakeTest() { options_.suite = GetParam(); }

  static void ExpectRefused(const HandshakeActions& actions, absl::StatusCode code) {
    ASSERT_TRUE(actions.end);
    EXPECT_EQ(actions.end->code(), code) << *actions.end;
    EXPECT_TRUE(actions.send.empty()) << "a stranger is answered";
    EXPECT_TRUE(actions.stop_timer);
  }

  SideOptions options_;
};

TEST_P(HandshakeTest, BothSidesBecomeEstablishedAndHearTheOthersPayload) {
  SideOptions theirs = options_;
  theirs.payload = "another name";
  TwoSides sides(1, options_, theirs);
  ASSERT_TRUE(sides.Run());
  EXPECT_EQ(TextOf(sides.initiator->peer_payload()), "another name");
  EXPECT_EQ(TextOf(sides.responder->peer_payload()), "a name");
  EXPECT_EQ(sides.first.size(), kNoiseOverhead + 6);
  EXPECT_EQ(sides.second.size(), kNoiseOverhead + 12);
  EXPECT_EQ(sides.confirming.size(), kTagSize);
}

TEST_P(HandshakeTest, TheLongestPayloadFitsIntoTheLongestMessage) {
  options_.payload = std::string(kMaxHandshakePayload, 'x');
  TwoSides sides(1, options_, options_);
  ASSERT_TRUE(sides.Run());
  EXPECT_EQ(sides.first.size(), kMaxHandshakeMessage);
  EXPECT_EQ(sides.second.size(), kMaxHandshakeMessage);
}

TEST_P(HandshakeTest, ActionsStartAndStopTheTimer) {
  TwoSides sides(1, options_, options_);
  EXPECT_EQ(sides.responder_begun.limit_after, kHandshakeTime);
  EXPECT_TRUE(sides.responder_begun.send.empty());
  EXPECT_EQ(sides.initiator_begun.limit_after, kHandshakeTime);
  const HandshakeActions second = sides.responder->OnMessage(sides.first);
  EXPECT_FALSE(second.end || second.stop_timer || second.limit_after);  // one time for all of it
  EXPECT_EQ(sides.responder->phase(), HandshakePhase::kAwaitsConfirming);
  const HandshakeActions third = sides.initiator->OnMessage(second.send);
  EXPECT_TRUE(third.stop_timer && third.end && third.end->ok());
  const HandshakeActions last = sides.responder->OnMessage(third.send);
  EXPECT_TRUE(last.stop_timer && last.end && last.end->ok() && last.send.empty());
}

TEST_P(HandshakeTest, WhoIsSilentIsRefusedInTime) {
  TwoSides sides(1, options_, options_);
  ExpectRefused(sides.responder->OnLimit(), absl::StatusCode::kDeadlineExceeded);
  ExpectRefused(sides.initiator->OnLimit(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(sides.responder->ended() && sides.initiator->ended());
  TwoSides other(2, options_, options_);  // a replay, whose sender cannot confirm, is silence as well
  EXPECT_FALSE(other.responder->OnMessage(sides.first).end);
  ExpectRefused(other.responder->OnLimit(), absl::StatusCode::kDeadlineExceeded);
}

TEST_P(HandshakeTest, AfterTheEndNothingIsHeardAndNothingHappens) {
  const auto expect_nothing = [](const HandshakeActions& actions) {
    EXPECT_TRUE(actions.send.empty() && !actions.limit_after && !actions.stop_timer && !actions.end);
  };
  TwoSides refused(1, options_, options_);
  refused.responder->OnMessage({});
  refused.initiator->OnLimit();
  TwoSides established(1, options_, options_);
  ASSERT_TRUE(established.Run());
  for (const TwoSides* sides : {&refused, &established}) {
    for (Handshake* side : {sides->initiator.get(), sides->responder.get()}) {
      const HandshakePhase phase = side->phase();
      for (const Bytes* message : {&established.first, &established.second, &established.confirming}) {
        expect_nothing(side->OnMessage(*message));
      }
      expect_nothing(side->OnLimit());
      EXPECT_EQ(side->phase(), phase);
    }
  }
  const SecuredConnection taken = established.responder->Take();
  EXPECT_EQ(taken.channel.opened(), 1u);
  EXPECT_DEATH(established.responder->Take(), "secured_");
  EXPECT_DEATH(refused.responder->Take(), "kEstablished");
  EXPECT_DEATH(refused.responder->peer_payload(), "kEstablished");
}

TEST_P(HandshakeTest, AnotherSecretIsRefusedByTheResponder) {
  SideOptions stranger = options_;
  stranger.secret = Bytes(32, 8);
  TwoSides sides(1, stranger, options_);
  ExpectRefused(sides.responder->OnMessage(sides.first), absl::StatusCode::kPermissionDenied);
}

TEST_P(HandshakeTest, AnotherSecretIsRefusedByTheInitiator) {
  SideOptions stranger = options_;
  stranger.secret = Bytes(32, 8);
  TwoSides honest(1, options_, options_), with_stranger(2, stranger, stranger);
  ASSERT_TRUE(with_stranger.Run());
  ExpectRefused(honest.initiator->OnMessage(with_stranger.second), absl::StatusCode::kPermissionDenied);
}

TEST_P(HandshakeTest, AReplayedFirstMessageEstablishesNothing) {
  TwoSides recorded(1, options_, options_);
  ASSERT_TRUE(recorded.Run());
  TwoSides later(2, options_, options_);  // the same facts once more: the worst case
  const HandshakeActions answer = later.responder->OnMessage(recorded.first);
  EXPECT_FALSE(answer.end);  // it cannot know yet, and serves nothing yet
  EXPECT_FALSE(later.responder->ended());
  ExpectRefused(later.responder->OnMessage(recorded.confirming), absl::StatusCode::kPermissionDenied);
}

TEST_P(HandshakeTest, AReplayedSecondMessageIsRefused) {
  TwoSides recorded(1, options_, options_);
  ASSERT_TRUE(recorded.Run());
  TwoSides later(2, options_, options_);
  ExpectRefused(later.initiator->OnMessage(recorded.second), absl::StatusCode::kPermissionDenied);
}

TEST_P(HandshakeTest, AMessageThatIsSentBackIsRefused) {
  TwoSides sides(1, options_, options_);
  const HandshakeActions returned = sides.initiator->OnMessage(sides.first);
  ExpectRefused(returned, absl::StatusCode::kPermissionDenied);
  EXPECT_NE(returned.end->message().find("our own key"), std::string::npos) << *returned.end;
}

TEST_P(HandshakeTest, AConfirmingMessageThatIsSentBackDoesNotOpen) {
  // The initiator's only transport message returns to it: each direction has its own key.
  TwoSides sides(1, options_, options_);
  ASSERT_TRUE(sides.Run());
  SecuredConnection initiator = sides.initiator->Take();
  EXPECT_FALSE(initiator.channel.Open({}, absl::MakeSpan(sides.confirming)).ok());
}

TEST_P(HandshakeTest, ANodeThatIsMadeToTalkToItselfNotices) {
  // The node's first message comes back to it as a request of the other node, and all that an
  // attacker between them can choose is the same in both connections.
  options_.responder_queue_pair = options_.initiator_queue_pair;
  options_.responder_hello = options_.initiator_hello;
  SideOptions reflected = options_;
  std::swap(reflected.initiator_address, reflected.responder_address);
  TwoSides sides(1, options_, reflected);
  ExpectRefused(sides.responder->OnMessage(sides.first), absl::StatusCode::kPermissionDenied);
}

TEST_P(HandshakeTest, AKeyThatMakesTheSecretZeroIsRefused) {
  // Who has the secret can send such a key in a first message that is otherwise right.
  for (const uint8_t low : {uint8_t{0}, uint8_t{1}}) {
    TwoSides sides(1, options_, options_);
    Bytes message(32, 0);
    message[0] = low;
    SymmetricState state(options_.suite);
    // The prologue of both sides, as MakeSide makes it.
    ConnectionFacts facts;
    const ClusterSecret secret(options_.secret);
    facts.protocol_version = options_.version;
    facts.suite = options_.suite;
    facts.secret = secret.id();
    facts.initiator = {BytesOf(options_.initiator_address), options_.initiator_queue_pair,
                       BytesOf(options_.initiator_hello)};
    facts.responder = {BytesOf(options_.responder_address), options_.responder_queue_pair,
                       BytesOf(options_.responder_hello)};
    state.MixHash(facts.Prologue());
    state.MixKeyAndHash(secret.bytes());
    const Bytes key = message;
    state.MixHash(key);
    state.MixKey(key);
    state.EncryptAndHash({}, &message);
    const HandshakeActions actions = sides.responder->OnMessage(message);
    ExpectRefused(actions, absl::StatusCode::kPermissionDenied);
    EXPECT_NE(actions.end->message().find("zeros"), std::string::npos) << *actions.end;
  }
}

TEST_P(HandshakeTest, EveryOtherSizeOfEveryMessageIsRefused) {
  options_.payload = "";
  TwoSides recorded(1, options_, options_);
  ASSERT_TRUE(recorded.Run());
  for (size_t size = 0; size <= kMaxHandshakeMessage + 1; ++size) {
    TwoSides sides(1, options_, options_);
    Bytes first = recorded.first, second = recorded.second, confirming = recorded.confirming;
    first.resize(size);
    second.resize(size);
    confirming.resize(size);
    EXPECT_EQ(sides.initiator->OnMessage(second).end->ok(), size == recorded.second.size()) << size;
    EXPECT_EQ(sides.responder->OnMessage(first).end.has_value(), size != recorded.first.size()) << size;
    TwoSides other(1, options_, options_);
    other.responder->OnMessage(recorded.first);
    EXPECT_EQ(other.responder->OnMessage(confirming).end->ok(), size == recorded.confirming.size()) << size;
  }
}

TEST_P(HandshakeTest, MessagesOutOfTurnAreRefused) {
  TwoSides recorded(1, options_, options_);
  ASSERT_TRUE(recorded.Run());
  for (const Bytes* wrong : {&recorded.second, &recorded.confirming}) {  // in place of the first
    TwoSides sides(1, options_, options_);
    EXPECT_FALSE(sides.responder->OnMessage(*wrong).end->ok());
  }
  for (const Bytes* wrong : {&recorded.first, &recorded.confirming}) {  // in place of the second
    TwoSides sides(1, options_, options_);
    EXPECT_FALSE(sides.initiator->OnMessage(*wrong).end->ok());
  }
  for (const Bytes* wrong : {&recorded.first, &recorded.second}) {  // in place of the confirming one
    TwoSides sides(1, options_, options_);
    sides.responder->OnMessage(recorded.first);
    EXPECT_FALSE(sides.responder->OnMessage(*wrong).end->ok());
  }
}

TEST_P(HandshakeTest, TheChannelGoesOnAfterTheConfirmingMessage) {
  TwoChannels both(GetParam());
  EXPECT_EQ(both.initiator->channel.sealed(), 1u);
  EXPECT_EQ(both.responder->channel.opened(), 1u);
  Bytes message = Sealed(both.initiator->channel, "to the responder");
  EXPECT_EQ(TextOf(*both.responder->channel.Open({}, absl::MakeSpan(message))), "to the responder");
  Bytes answer = Sealed(both.responder->channel, "to the initiator");
  EXPECT_EQ(TextOf(*both.initiator->channel.Open({}, absl::MakeSpan(answer))), "to the initiator");
}

TEST_P(HandshakeTest, TwoConnectionsOfTheSameFactsHaveOtherKeys) {
  TwoSides one(1, options_, options_), other(2, options_, options_);
  ASSERT_TRUE(one.Run() && other.Run());
  SecuredConnection sender = one.initiator->Take(), stranger = other.responder->Take();
  Bytes message = Sealed(sender.channel, "x");
  EXPECT_FALSE(stranger.channel.Open({}, absl::MakeSpan(message)).ok());
}

TEST_P(HandshakeTest, PhasesHaveNames) {
  for (uint8_t phase = 0; phase <= static_cast<uint8_t>(HandshakePhase::kRefused); ++phase) {
    EXPECT_STRNE(ToString(static_cast<HandshakePhase>(phase)), "?");
  }
}

INSTANTIATE_TEST_SUITE_P(Suites, HandshakeTest, testing::Values(CipherSuite::kAesGcm, CipherSuite::kChaChaPoly),
                         [](const testing::TestParamInfo<CipherSuite>& param) {
                           return param.param == CipherSuite::kAesGcm ? "AesGcm" : "ChaChaPoly";
                         });

}  // namespace
}  // namespace tokamak::security

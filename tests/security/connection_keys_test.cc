#include "lib/security/connection_keys.h"

#include <functional>

#include "gtest/gtest.h"
#include "tests/security/two_sides.h"
#include "tests/support/hex.h"

namespace tokamak::security {
namespace {

using support::BytesOfHex;

QueuePairFacts SomeFacts() {
  QueuePairFacts facts;
  facts.queue = 3;
  facts.attempt = 5;
  facts.hello = BytesOf("hello");
  return facts;
}

class ConnectionKeysTest : public testing::Test {
 protected:
  ConnectionKeys& initiator() { return both_.initiator->keys; }
  ConnectionKeys& responder() { return both_.responder->keys; }

  TwoChannels both_;
};

TEST_F(ConnectionKeysTest, ProofsAndKeysAreThoseOfTheFormat) {  // computed with Python's hmac and python3-cryptography
  Hash connection;
  connection.fill(9);
  ConnectionKeys keys(Role::kInitiator, CipherSuite::kAesGcm, Key(Bytes(32, 7)), connection);
  const Proof proof = keys.Prove(SomeFacts());
  EXPECT_EQ(Bytes(proof.begin(), proof.end()), BytesOfHex("5450d548adf6a7e40d00e9ea120119e4"));
  SealedChannel channel = keys.MakeChannel(3, 5);
  EXPECT_EQ(Sealed(channel, "tokamak"), BytesOfHex("cf0ca3c54ca1476df23663e21075e265e7892b76c426d7"));
}

TEST_F(ConnectionKeysTest, EachSideProvesToTheOther) {
  QueuePairFacts facts = SomeFacts();
  EXPECT_TRUE(responder().Check(facts, initiator().Prove(facts)).ok());
  EXPECT_TRUE(initiator().Check(facts, responder().Prove(facts)).ok());
}

TEST_F(ConnectionKeysTest, AProofIsOfNoUseForOtherFacts) {
  const struct {
    const char* name;
    std::function<void(QueuePairFacts*)> change;
  } changes[] = {
      {"queue", [](QueuePairFacts* f) { f->queue = 4; }},
      {"attempt", [](QueuePairFacts* f) { f->attempt = 6; }},
      {"hello", [](QueuePairFacts* f) { f->hello = BytesOf("Hello"); }},
  };
  const Proof proof = initiator().Prove(SomeFacts());
  for (const auto& change : changes) {
    QueuePairFacts facts = SomeFacts();
    change.change(&facts);
    EXPECT_EQ(responder().Check(facts, proof).code(), absl::StatusCode::kPermissionDenied) << change.name;
  }
  EXPECT_TRUE(responder().Check(SomeFacts(), proof).ok());  // none of these used it up
}

TEST_F(ConnectionKeysTest, AChangedCutOrReturnedProofIsRefused) {
  const Proof proof = initiator().Prove(SomeFacts());
  for (size_t bit = 0; bit < 8 * proof.size(); ++bit) {
    Proof changed = proof;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_EQ(responder().Check(SomeFacts(), changed).code(), absl::StatusCode::kPermissionDenied);
  }
  for (size_t size = 0; size < proof.size(); ++size) {
    EXPECT_FALSE(responder().Check(SomeFacts(), absl::MakeConstSpan(proof).first(size)).ok());
  }
  EXPECT_EQ(initiator().Check(SomeFacts(), proof).code(), absl::StatusCode::kPermissionDenied) << "its own";
}

TEST_F(ConnectionKeysTest, AProofIsTakenOnceAndAttemptsGrowForEachQueue) {
  QueuePairFacts facts = SomeFacts();
  const Proof fifth = initiator().Prove(facts);
  facts.attempt = 4;
  const Proof fourth = initiator().Prove(facts);
  EXPECT_TRUE(responder().Check(SomeFacts(), fifth).ok());
  EXPECT_EQ(responder().Check(SomeFacts(), fifth).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(responder().Check(facts, fourth).code(), absl::StatusCode::kAlreadyExists);
  facts.queue = 2;  // another queue counts by itself, and may come later
  EXPECT_TRUE(responder().Check(facts, initiator().Prove(facts)).ok());
  facts.queue = 3;
  facts.attempt = 6;
  EXPECT_TRUE(responder().Check(facts, initiator().Prove(facts)).ok());
}

TEST_F(ConnectionKeysTest, AProofOfAnotherConnectionIsRefused) {
  SideOptions options;
  TwoSides other(99, options, options);
  ASSERT_TRUE(other.Run());
  const SecuredConnection stranger = other.initiator->Take();
  EXPECT_EQ(responder().Check(SomeFacts(), stranger.keys.Prove(SomeFacts())).code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(ConnectionKeysTest, ChannelsOfQueuesAndAttemptsHaveKeysOfTheirOwn) {
  SealedChannel sender = initiator().MakeChannel(3, 5);
  SealedChannel receiver = responder().MakeChannel(3, 5);
  Bytes message = Sealed(sender, "bulk");
  TwoChannels same;  // from the same seed, so with the same keys
  SealedChannel others[] = {responder().MakeChannel(3, 6), responder().MakeChannel(4, 5),
                            same.initiator->keys.MakeChannel(3, 5)};
  for (SealedChannel& other : others) {
    Bytes copy = message;
    EXPECT_FALSE(other.Open({}, absl::MakeSpan(copy)).ok());
  }
  Bytes copy = message;
  EXPECT_FALSE(both_.responder->channel.Open({}, absl::MakeSpan(copy)).ok());
  EXPECT_EQ(TextOf(*receiver.Open({}, absl::MakeSpan(message))), "bulk");
}

TEST_F(ConnectionKeysTest, NoTwoChannelsHaveTheSameKeys) {
  initiator().MakeChannel(3, 5);
  EXPECT_DEATH(initiator().MakeChannel(3, 5), "two channels with the same keys");
  EXPECT_DEATH(initiator().MakeChannel(3, 4), "two channels with the same keys");
}

}  // namespace
}  // namespace tokamak::security

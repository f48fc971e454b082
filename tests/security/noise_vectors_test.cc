// The handshake against vectors of the Noise community for NNpsk0: those of cacophony (the Haskell
// implementation, https://github.com/haskell-cryptography/cacophony, vectors/cacophony.txt), as
// snow, the Rust implementation, keeps them too (https://github.com/mcginty/snow,
// tests/vectors/cacophony.txt). Their handshake_hash is the one after the first message in the
// edition that was at hand; the one after the second was computed with Python's hashlib and
// python3-cryptography, whose messages are those of the vectors as well.
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lib/security/noise_handshake.h"
#include "lib/security/sealed_channel.h"
#include "tests/security/two_sides.h"
#include "tests/support/hex.h"

namespace tokamak::security {
namespace {

using support::BytesOfHex;

// The same in all of these vectors.
constexpr char kPrologue[] = "4a6f686e2047616c74";
constexpr char kSecret[] = "54686973206973206d7920417573747269616e20706572737065637469766521";
constexpr char kInitiatorKey[] = "893e28b9dc6ca8d611ab664754b8ceb7bac5117349a4439a6b0569da977c464a";
constexpr char kResponderKey[] = "bbdb4cdbd309f1a1f2e1456967fe288cadd6f712d65dc7b7793d5e63da6b375b";
const char* const kPayloads[] = {
    "4c756477696720766f6e204d69736573",
    "4d757272617920526f746862617264",
    "462e20412e20486179656b",
    "4361726c204d656e676572",
    "4a65616e2d426170746973746520536179",
    "457567656e2042f6686d20766f6e2042617765726b",
};

struct NoiseVector {
  CipherSuite suite;
  const char* hash_of_first;  // the vector's
  const char* hash;
  std::vector<const char*> messages;  // two of the handshake, then of the transport, in turn
};

class NoiseVectorsTest : public testing::TestWithParam<NoiseVector> {};

TEST_P(NoiseVectorsTest, EachMessageIsThatOfTheVector) {
  const NoiseVector& vector = GetParam();
  const Bytes prologue = BytesOfHex(kPrologue), secret = BytesOfHex(kSecret);
  NoiseHandshake initiator(Role::kInitiator, vector.suite, prologue, secret, BytesOfHex(kInitiatorKey));
  NoiseHandshake responder(Role::kResponder, vector.suite, prologue, secret, BytesOfHex(kResponderKey));

  const absl::StatusOr<Bytes> first = initiator.Write(BytesOfHex(kPayloads[0]));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*first, BytesOfHex(vector.messages[0]));
  EXPECT_EQ(Bytes(initiator.hash().begin(), initiator.hash().end()), BytesOfHex(vector.hash_of_first));
  const absl::StatusOr<Bytes> first_payload = responder.Read(*first);
  ASSERT_TRUE(first_payload.ok()) << first_payload.status();
  EXPECT_EQ(*first_payload, BytesOfHex(kPayloads[0]));

  const absl::StatusOr<Bytes> second = responder.Write(BytesOfHex(kPayloads[1]));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(*second, BytesOfHex(vector.messages[1]));
  const absl::StatusOr<Bytes> second_payload = initiator.Read(*second);
  ASSERT_TRUE(second_payload.ok()) << second_payload.status();
  EXPECT_EQ(*second_payload, BytesOfHex(kPayloads[1]));

  ASSERT_TRUE(initiator.complete() && responder.complete());
  EXPECT_EQ(Bytes(initiator.hash().begin(), initiator.hash().end()), BytesOfHex(vector.hash));
  EXPECT_EQ(initiator.hash(), responder.hash());
  EXPECT_EQ(initiator.Export("x").bytes(), responder.Export("x").bytes());
  EXPECT_NE(initiator.Export("x").bytes(), initiator.Export("y").bytes());

  auto ours = initiator.Split();
  auto theirs = responder.Split();
  EXPECT_DEATH(initiator.Split(), "complete") << "a second pair would number its messages like the first";
  SealedChannel one(Role::kInitiator, std::move(ours.first), std::move(ours.second));
  SealedChannel other(Role::kResponder, std::move(theirs.first), std::move(theirs.second));
  for (size_t i = 2; i < vector.messages.size(); ++i) {
    SealedChannel& from = i % 2 == 0 ? one : other;
    SealedChannel& to = i % 2 == 0 ? other : one;
    Bytes message = Sealed(from, TextOf(BytesOfHex(kPayloads[i])));
    EXPECT_EQ(message, BytesOfHex(vector.messages[i])) << "message " << i;
    const absl::StatusOr<absl::Span<uint8_t>> opened = to.Open({}, absl::MakeSpan(message));
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(Bytes(opened->begin(), opened->end()), BytesOfHex(kPayloads[i]));
  }
}

TEST(NoiseHandshakeTest, ARefusedMessageEndsIt) {
  const Bytes secret(32, 1);
  NoiseHandshake initiator(Role::kInitiator, CipherSuite::kAesGcm, {}, secret, Bytes(32, 2));
  NoiseHandshake responder(Role::kResponder, CipherSuite::kAesGcm, {}, secret, Bytes(32, 3));
  Bytes first = *initiator.Write({});
  first.back() ^= 1;
  EXPECT_FALSE(responder.Read(first).ok());
  EXPECT_FALSE(responder.complete());
  EXPECT_DEATH(responder.Write({}).IgnoreError(), "state_");
  EXPECT_DEATH(responder.Read(first).IgnoreError(), "state_");
  EXPECT_DEATH(responder.Export("x"), "complete");
  EXPECT_FALSE(initiator.Read(Bytes(kNoiseOverhead, 5)).ok());
  EXPECT_FALSE(initiator.complete());
}

INSTANTIATE_TEST_SUITE_P(
    Cacophony, NoiseVectorsTest,
    testing::Values(NoiseVector{CipherSuite::kAesGcm,
                                "29d92c13649b5d28b41afd8dc5d6ce7f46df2348e4061c09f1c354b593e13add",
                                "9f3b1f9afd7767767b5b9d1069844a6154fdbdcc36dfb3e31c0fffc5c973d530",
                                {"ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
                                 "7c37a89fc17813788d30df2d59501d6066f5f8aecc3406bbd9829f2d24a531b1",
                                 "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
                                 "2f29d79368ef9de4e1ae7a362fb05bf0ad668e026bf5714554497b3a720461",
                                 "7c01e898a6201f36aecee532e29cd0b7f8ffa29d3366ad0dce39a6",
                                 "a9ff535aace3db6a1da1a7fb00fe2de2622bb373abad9fb42c00e0",
                                 "6cfc49a3e65472edc2d0152abe5ce950170a8a47c959f30bd48b5f0aacf29adbfd",
                                 "9bc86e6d974ed21ba04604a94aa68de21677eb409ead070c0cd569b069ee19ba142aa4c1a9"}},
                    NoiseVector{CipherSuite::kChaChaPoly,
                                "054a32eaeedc4061a64cec028e34e5775d4de033e32525a5dfbd719056bae0b6",
                                "f4d03dc34495c95729ea6de9e1b59004b59733102488b3e24bc441e0be208eaf",
                                {"ca35def5ae56cec33dc2036731ab14896bc4c75dbb07a61f879f8e3afa4c7944"
                                 "79b962b8aff8485742ac32f905ba45369e2465fb59e138a93d67a0d1266b6a54",
                                 "95ebc60d2b1fa672c1f46a8aa265ef51bfe38e7ccb39ec5be34069f144808843"
                                 "d6062704d5a9c422a8e834423f8c1feada7e8d0d910a1a2cd030fb584221e3",
                                 "e632c3763d7669067383433197a3baddf146e9e70ad4b4e9e59e0f",
                                 "64c6bee32ea91c8474bb4c21d7a700109ad45af77b29764ba5eb1e",
                                 "e2fa0bed0603b62d3ccac2ecabbf3fe33f3e86514909b323361626266cb2471cc8",
                                 "0c01dc9cec1fe4ddd692e8dd32188aa351088dc91183639a53b57aa4692b5ebdef8b8ca111"}}),
    [](const testing::TestParamInfo<NoiseVector>& param) {
      return param.param.suite == CipherSuite::kAesGcm ? "AesGcm" : "ChaChaPoly";
    });

}  // namespace
}  // namespace tokamak::security

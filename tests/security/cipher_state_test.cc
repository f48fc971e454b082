// CipherState seals what python3-cryptography seals with the nonces of the Noise Protocol
// Framework: the numbers were computed with its AESGCM and ChaCha20Poly1305, key 00 01 ... 1f.
#include "lib/security/cipher_state.h"

#include <utility>

#include "gtest/gtest.h"
#include "lib/security/digest.h"
#include "tests/security/two_sides.h"
#include "tests/support/hex.h"

namespace tokamak::security {
namespace {

using support::BytesOfHex;

struct KnownCipher {
  CipherSuite suite;
  const char* empty;    // message 0: nothing
  const char* text;     // message 1: "tokamak", with "additional"
  const char* rekeyed;  // message 2 after a Rekey: "tokamak"
};

class CipherStateTest : public testing::TestWithParam<KnownCipher> {
 protected:
  static CipherState Make() {
    CipherState cipher(GetParam().suite);
    Bytes key(32);
    for (size_t i = 0; i < key.size(); ++i) key[i] = static_cast<uint8_t>(i);
    cipher.SetKey(Key(key));
    return cipher;
  }
  static Bytes SealNext(CipherState& cipher, absl::string_view plain, absl::string_view additional) {
    Bytes message = BytesOfText(plain);
    message.resize(message.size() + kTagSize);
    cipher.Seal(BytesOf(additional), absl::MakeSpan(message));
    return message;
  }
};

TEST_P(CipherStateTest, SealsAsOthersDo) {
  CipherState cipher = Make();
  EXPECT_EQ(SealNext(cipher, "", ""), BytesOfHex(GetParam().empty));
  EXPECT_EQ(SealNext(cipher, "tokamak", "additional"), BytesOfHex(GetParam().text));
  cipher.Rekey();
  EXPECT_EQ(cipher.next(), 2u);
  EXPECT_EQ(SealNext(cipher, "tokamak", ""), BytesOfHex(GetParam().rekeyed));
}

TEST_P(CipherStateTest, OpensAsOthersSeal) {
  CipherState cipher = Make();
  Bytes empty = BytesOfHex(GetParam().empty), text = BytesOfHex(GetParam().text),
        rekeyed = BytesOfHex(GetParam().rekeyed);
  EXPECT_TRUE(cipher.Open({}, absl::MakeSpan(empty)));
  EXPECT_TRUE(cipher.Open(BytesOf("additional"), absl::MakeSpan(text)));
  EXPECT_EQ(TextOf(absl::MakeSpan(text).first(7)), "tokamak");
  cipher.Rekey();
  EXPECT_TRUE(cipher.Open({}, absl::MakeSpan(rekeyed)));
  EXPECT_EQ(TextOf(absl::MakeSpan(rekeyed).first(7)), "tokamak");
}

TEST_P(CipherStateTest, AFailureLeavesTheNumberAndNoByteOfTheMessage) {
  CipherState cipher = Make();
  Bytes empty = BytesOfHex(GetParam().empty), text = BytesOfHex(GetParam().text), again = text;
  EXPECT_FALSE(cipher.Open(BytesOf("additional"), absl::MakeSpan(again)));  // not its turn
  EXPECT_EQ(again, Bytes(text.size(), 0));
  EXPECT_EQ(cipher.next(), 0u);
  EXPECT_TRUE(cipher.Open({}, absl::MakeSpan(empty)));
  EXPECT_TRUE(cipher.Open(BytesOf("additional"), absl::MakeSpan(text)));
  Bytes no_tag(kTagSize - 1, 1);
  EXPECT_FALSE(cipher.Open({}, absl::MakeSpan(no_tag)));
}

TEST_P(CipherStateTest, MovesWithItsKey) {
  CipherState first = Make();
  CipherState second = std::move(first);
  EXPECT_EQ(SealNext(second, "", ""), BytesOfHex(GetParam().empty));
}

INSTANTIATE_TEST_SUITE_P(Ciphers, CipherStateTest,
                         testing::Values(KnownCipher{CipherSuite::kAesGcm, "f05d76ae4ab99fe5a6f69b3148c2363d",
                                                     "61b9d49d29955b9cbdcd7ca9b59e4b25aebda2570e5fed",
                                                     "345c477ba219527304403cb2ccb6cccffa1b7fa0792b36"},
                                         KnownCipher{CipherSuite::kChaChaPoly, "10324f800a160bd9a1794255be7ec29d",
                                                     "eb38983ed84bc4aeadb51f6a89195c93995ad8918d5251",
                                                     "f0f483f68af4310a0fea1d2d2c92d6adec8ad6b1df8de1"}),
                         [](const testing::TestParamInfo<KnownCipher>& param) {
                           return param.param.suite == CipherSuite::kAesGcm ? "AesGcm" : "ChaChaPoly";
                         });

}  // namespace
}  // namespace tokamak::security

// Known answers of the standards that the keys are derived by.
#include "lib/security/digest.h"

#include "gtest/gtest.h"
#include "tests/security/two_sides.h"
#include "tests/support/hex.h"

namespace tokamak::security {
namespace {

using support::BytesOfHex;

Bytes AsBytes(absl::Span<const uint8_t> bytes) { return Bytes(bytes.begin(), bytes.end()); }

TEST(DigestTest, Sha256OfPiecesIsThatOfTheWhole) {  // FIPS 180-2, appendix B.1
  EXPECT_EQ(AsBytes(Sha256({BytesOf("a"), {}, BytesOf("bc")})),
            BytesOfHex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  EXPECT_EQ(AsBytes(Sha256({})), BytesOfHex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
}

TEST(DigestTest, HmacIsThatOfRfc4231) {  // case 2
  EXPECT_EQ(AsBytes(HmacSha256(BytesOf("Jefe"), {BytesOf("what do ya want "), BytesOf("for nothing?")}).bytes()),
            BytesOfHex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
}

TEST(DigestTest, ExpansionIsThatOfRfc5869) {  // appendix A.1: the first block
  const Key key(BytesOfHex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
  const Bytes info = BytesOfHex("f0f1f2f3f4f5f6f7f8f9");
  EXPECT_EQ(AsBytes(HkdfExpand(key, info).bytes()),
            BytesOfHex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"));
}

}  // namespace
}  // namespace tokamak::security

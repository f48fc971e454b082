// X25519 as RFC 7748 has it, and the points that make every secret zero.
#include "lib/security/ephemeral.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/security/two_sides.h"
#include "tests/support/hex.h"

namespace tokamak::security {
namespace {

using support::BytesOfHex;

PublicKey PublicKeyOf(absl::Span<const uint8_t> bytes) {
  PublicKey key{};
  std::copy(bytes.begin(), bytes.end(), key.begin());
  return key;
}

TEST(EphemeralTest, AgreesAsInRfc7748) {  // section 5.2, the iterated test
  Bytes k = BytesOfHex("0900000000000000000000000000000000000000000000000000000000000000");
  Bytes u = k;
  for (int round = 1; round <= 1000; ++round) {
    const std::optional<Key> shared = Ephemeral(k).Agree(PublicKeyOf(u));
    ASSERT_TRUE(shared);
    u = k;
    k.assign(shared->bytes().begin(), shared->bytes().end());
    if (round == 1) {
      EXPECT_EQ(k, BytesOfHex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"));
    }
  }
  EXPECT_EQ(k, BytesOfHex("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"));
}

TEST(EphemeralTest, BothSidesAgree) {
  base::Random random(1);
  const Ephemeral one(Draw(random, 32)), other(Draw(random, 32));
  const std::optional<Key> first = one.Agree(other.public_key()), second = other.Agree(one.public_key());
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes(), second->bytes());
  EXPECT_NE(one.public_key(), other.public_key());
}

TEST(EphemeralTest, RefusesPointsOfSmallOrder) {
  base::Random random(1);
  const Ephemeral own(Draw(random, 32));
  const char* const points[] = {
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
      "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  };
  for (const char* const point : points) EXPECT_FALSE(own.Agree(PublicKeyOf(BytesOfHex(point)))) << point;
}

}  // namespace
}  // namespace tokamak::security

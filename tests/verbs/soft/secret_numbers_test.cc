#include "lib/verbs/soft/state/secret_numbers.h"

#include <numeric>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace tokamak::verbs::soft {
namespace {

// From the paper and its reference implementation: the key and the messages are 00 01 02 ...
TEST(SecretNumbersTest, SipHashMatchesItsPublishedValues) {
  std::vector<uint8_t> message(15);
  std::iota(message.begin(), message.end(), uint8_t{0});
  constexpr uint64_t kKey0 = 0x0706050403020100, kKey1 = 0x0f0e0d0c0b0a0908;
  EXPECT_EQ(SipHash(kKey0, kKey1, {}), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(SipHash(kKey0, kKey1, message), 0xa129ca6149be45e5u);
  EXPECT_EQ(SipHash(kKey0, kKey1, absl::MakeConstSpan(message).first(8)), 0x93f5f5799a932462u);
}

TEST(SecretNumbersTest, PurposesOfOneSeedHaveNothingInCommon) {
  SecretNumbers one(5, 1), same(5, 1), other(5, 2);
  std::set<uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t number = one.Next();
    EXPECT_EQ(number, same.Next());
    drawn.insert(number);
    drawn.insert(other.Next());
  }
  EXPECT_EQ(drawn.size(), 2000u);
}

TEST(SecretNumbersTest, ASealDependsOnTheMessageAndDiffersFromDrawnNumbers) {
  SecretNumbers numbers(5, 1);
  const std::vector<uint8_t> first(8), second(9);
  EXPECT_EQ(numbers.Seal(first), numbers.Seal(first));
  EXPECT_NE(numbers.Seal(first), numbers.Seal(second));
  EXPECT_NE(numbers.Seal(first), SecretNumbers(5, 2).Seal(first));
  EXPECT_NE(numbers.Seal(first), numbers.Next()) << "the first counter has the same bytes";
}

TEST(SecretNumbersTest, BelowStaysBelowItsBound) {
  SecretNumbers numbers(5, 1);
  std::set<uint64_t> drawn;
  for (int i = 0; i < 1000; ++i) drawn.insert(numbers.Below(10));
  EXPECT_EQ(drawn.size(), 10u);
  EXPECT_EQ(*drawn.rbegin(), 9u);
}

}  // namespace
}  // namespace tokamak::verbs::soft

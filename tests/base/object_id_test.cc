#include "lib/base/object_id.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>

#include "absl/hash/hash.h"

namespace tokamak::base {
namespace {

TEST(ObjectIdTest, TheDefaultIsAllZero) { EXPECT_EQ(ObjectId().ToHex(), std::string(40, '0')); }

TEST(ObjectIdTest, HexSurvivesTheRoundTrip) {
  const std::string hex = "00112233445566778899aabbccddeeff01020304";
  const std::optional<ObjectId> id = ObjectId::FromHex(hex);
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(id->ToHex(), hex);
  EXPECT_EQ(id->data()[0], 0x00);
  EXPECT_EQ(id->data()[1], 0x11);
  EXPECT_EQ(id->data()[19], 0x04);
}

TEST(ObjectIdTest, HexInCapitalsIsTheSameId) {
  EXPECT_EQ(*ObjectId::FromHex("00112233445566778899AABBCCDDEEFF01020304"),
            *ObjectId::FromHex("00112233445566778899aabbccddeeff01020304"));
}

TEST(ObjectIdTest, RefusesTextOtherThanFortyHexDigits) {
  for (const std::string& bad : {std::string(), std::string(39, 'a'), std::string(41, 'a'), std::string(40, 'g'),
                                 std::string(39, 'a') + " ", std::string(40, '\0')}) {
    EXPECT_FALSE(ObjectId::FromHex(bad).has_value()) << bad;
  }
}

TEST(ObjectIdTest, ANameGivesTheSameIdOnEveryMachine) {
  // Programs of different versions must agree: never change these.
  EXPECT_EQ(ObjectId::FromName("").ToHex(), "88010eda4dd5ba85fb6dddc22f3020beb7a14a5e");
  EXPECT_EQ(ObjectId::FromName("weights/7").ToHex(), "46b42c8ba9be036356c73fbb6385a3af2ef8fd71");
}

TEST(ObjectIdTest, NamesGiveDifferentIds) {
  std::set<ObjectId> ids;
  for (int i = 0; i < 10'000; ++i) ids.insert(ObjectId::FromName(std::to_string(i)));
  ids.insert(ObjectId::FromName(std::string(1, '\0')));
  ids.insert(ObjectId::FromName(std::string(2, '\0')));
  ids.insert(ObjectId::FromName(""));
  EXPECT_EQ(ids.size(), 10'003u);
}

TEST(ObjectIdTest, OrdersAsItsBytesDo) {
  const ObjectId low = *ObjectId::FromHex("00000000000000000000000000000000000000ff");
  const ObjectId high = *ObjectId::FromHex("0100000000000000000000000000000000000000");
  EXPECT_TRUE(low < high);
  EXPECT_FALSE(high < low);
  EXPECT_TRUE(low != high);
}

TEST(ObjectIdTest, EqualIdsHashEqually) {
  EXPECT_EQ(absl::Hash<ObjectId>()(ObjectId::FromName("a")), absl::Hash<ObjectId>()(ObjectId::FromName("a")));
  EXPECT_NE(absl::Hash<ObjectId>()(ObjectId::FromName("a")), absl::Hash<ObjectId>()(ObjectId::FromName("b")));
  EXPECT_EQ(std::hash<ObjectId>()(ObjectId::FromName("a")), std::hash<ObjectId>()(ObjectId::FromName("a")));
}

TEST(ObjectIdTest, HashesOfTheStandardLibrarySpread) {
  std::set<size_t> hashes;
  for (int i = 0; i < 10'000; ++i) hashes.insert(std::hash<ObjectId>()(ObjectId::FromName(std::to_string(i))) % 16384);
  EXPECT_GT(hashes.size(), 7000u) << "7,500 of 16,384 are expected to be hit by chance";
}

}  // namespace
}  // namespace tokamak::base

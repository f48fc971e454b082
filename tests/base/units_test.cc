#include "lib/base/units.h"

#include "gtest/gtest.h"

namespace tokamak::base {
namespace {

TEST(UnitsTest, SizesAreReadInPowersOf1024And1000) {
  EXPECT_EQ(*ParseSize("17"), 17u);
  EXPECT_EQ(*ParseSize("64k"), 65536u);
  EXPECT_EQ(*ParseSize("512MiB"), 512u << 20);
  EXPECT_EQ(*ParseSize(" 1.5 GiB "), 3u << 29);
  EXPECT_EQ(*ParseSize("2KB"), 2000u);
  EXPECT_EQ(*ParseSize("0"), 0u);
}

TEST(UnitsTest, AMalformedSizeNamesTheRemedy) {
  for (const char* text : {"", "MiB", "12XB", "1..2", "-3MiB", "99999999999TiB", "5 kittens"}) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_FALSE(size.status().message().empty());
  }
}

TEST(UnitsTest, SizesAreWrittenForPeople) {
  EXPECT_EQ(FormatSize(17), "17 B");
  EXPECT_EQ(FormatSize(512u << 20), "512 MiB");
  EXPECT_EQ(FormatSize(3u << 29), "1.5 GiB");
}

TEST(UnitsTest, DurationsAreReadAndWritten) {
  EXPECT_EQ(*ParseDuration("250ms"), Milliseconds(250));
  EXPECT_EQ(*ParseDuration("1.5s"), Milliseconds(1500));
  EXPECT_EQ(*ParseDuration("2min"), Seconds(120));
  EXPECT_FALSE(ParseDuration("3 moons").ok());
  EXPECT_EQ(FormatDuration(Nanoseconds(12300)), "12.3 us");
  EXPECT_EQ(FormatDuration(Milliseconds(1500)), "1.50 s");
}

TEST(UnitsTest, RatesAreRead) {
  EXPECT_EQ(*ParseRate("100Gb/s"), 100'000'000'000u);
  EXPECT_EQ(*ParseRate(" 2.5 Gb/s "), 2'500'000'000u);
  EXPECT_EQ(*ParseRate("200Mb/s"), 200'000'000u);
  for (const char* text : {"", "100", "100GB/s", "100gbps", "-1Gb/s", "99999999999Tb/s"}) {
    EXPECT_FALSE(ParseRate(text).ok()) << text;
  }
}

TEST(UnitsTest, SharesAreRead) {
  EXPECT_DOUBLE_EQ(*ParseShare("1%"), 0.01);
  EXPECT_DOUBLE_EQ(*ParseShare("0.1%"), 0.001);
  EXPECT_DOUBLE_EQ(*ParseShare(" 0.25 "), 0.25);
  EXPECT_DOUBLE_EQ(*ParseShare("100%"), 1);
  for (const char* text : {"", "%", "1.5", "101%", "-1%", "1e-3", "nan", "a few"}) {
    EXPECT_FALSE(ParseShare(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tokamak::base
